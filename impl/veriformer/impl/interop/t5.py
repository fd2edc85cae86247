"""T5, as `T5ForConditionalGeneration` of Hugging Face's transformers names it."""

from collections.abc import Iterator
from typing import Any

from veriformer.impl import checks
from veriformer.impl.interop.entries import Entry, linear, norm, plain
from veriformer.impl.models import families
from veriformer.impl.models.config import ModelConfig

NETWORKS = {"relu": "relu", "gated-gelu": "geglu", "gated-silu": "swiglu"}


def config(theirs: Any, tied: bool) -> ModelConfig:
    """Return our config for theirs. Logits are scaled where they say so, or, where they say nothing, when tied."""
    network = checks.choice("feed_forward_proj", theirs.feed_forward_proj, NETWORKS)
    scaled = getattr(theirs, "scale_decoder_outputs", tied)
    return families.t5(
        vocab_size=theirs.vocab_size,
        d_model=theirs.d_model,
        num_layers=theirs.num_layers,
        num_decoder_layers=theirs.num_decoder_layers,
        num_heads=theirs.num_heads,
        head_dim=theirs.d_kv,
        intermediate_size=theirs.d_ff,
        activation=NETWORKS[network],
        t5_buckets=theirs.relative_attention_num_buckets,
        t5_max_distance=theirs.relative_attention_max_distance,
        eps=theirs.layer_norm_epsilon,
        dropout=theirs.dropout_rate,
        logit_scale=theirs.d_model**-0.5 if scaled else 1.0,
        tied=tied,
    )


def entries(c: ModelConfig) -> Iterator[Entry]:
    """Give the correspondence of all weights."""
    yield plain("embedding.tokens.weight", "shared.weight")
    for side, layers in (("encoder", c.num_layers), ("decoder", c.decoder_layers)):
        bias = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        yield plain(f"{side}.relative_bias.weight", bias)
        for i in range(layers):
            yield from _block(c, f"{side}.blocks.{i}", f"{side}.block.{i}.layer", side == "decoder")
        yield from norm(f"{side}.norm", f"{side}.final_layer_norm", bias=False)
    if not c.tied:
        yield plain("head.weight", "lm_head.weight")


def _block(c: ModelConfig, ours: str, theirs: str, cross: bool) -> Iterator[Entry]:
    h = c.num_heads * c.d_k
    own, other, network = (
        f"{theirs}.0.SelfAttention",
        f"{theirs}.1.EncDecAttention",
        f"{theirs}.{1 + cross}.DenseReluDense",
    )
    yield from norm(f"{ours}.attention_norm", f"{theirs}.0.layer_norm", bias=False)
    yield from linear(f"{ours}.attention.qkv", f"{own}.q", f"{own}.k", f"{own}.v", bias=False, sizes=(h, h, h))
    yield from linear(f"{ours}.attention.out", f"{own}.o", bias=False)
    if cross:
        yield from norm(f"{ours}.cross_norm", f"{theirs}.1.layer_norm", bias=False)
        yield from linear(f"{ours}.cross.q", f"{other}.q", bias=False)
        yield from linear(f"{ours}.cross.kv", f"{other}.k", f"{other}.v", bias=False, sizes=(h, h))
        yield from linear(f"{ours}.cross.out", f"{other}.o", bias=False)
    yield from norm(f"{ours}.network_norm", f"{theirs}.{1 + cross}.layer_norm", bias=False)
    up = (f"{network}.wi_0", f"{network}.wi_1") if c.gated else (f"{network}.wi",)
    yield from linear(f"{ours}.network.up", *up, bias=False, sizes=(c.d_ff, c.d_ff) if c.gated else ())
    yield from linear(f"{ours}.network.down", f"{network}.wo", bias=False)


def shared(c: ModelConfig) -> dict[str, str]:
    """Return their names that repeat a tensor, and the name of the tensor."""
    names = {f"{side}.embed_tokens.weight": "shared.weight" for side in ("encoder", "decoder")}
    return names | ({"lm_head.weight": "shared.weight"} if c.tied else {})
