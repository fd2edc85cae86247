"""Llama, as `LlamaForCausalLM` of Hugging Face's transformers names it."""

from collections.abc import Iterator
from typing import Any

from veriformer.impl import checks
from veriformer.impl.interop.entries import Entry, linear, norm, plain
from veriformer.impl.models import families
from veriformer.impl.models.config import ModelConfig


def config(theirs: Any, tied: bool) -> ModelConfig:
    """Return our config for theirs."""
    if theirs.attention_bias != theirs.mlp_bias:
        checks.raise_for(
            "config", "biases everywhere or nowhere", "attention_bias != mlp_bias", "one field decides here"
        )
    checks.choice("hidden_act", theirs.hidden_act, ("silu",))
    base, scaling = _rope(theirs)
    return families.llama(
        vocab_size=theirs.vocab_size,
        d_model=theirs.hidden_size,
        num_layers=theirs.num_hidden_layers,
        num_heads=theirs.num_attention_heads,
        num_kv_heads=theirs.num_key_value_heads,
        head_dim=getattr(theirs, "head_dim", None),
        intermediate_size=theirs.intermediate_size,
        max_length=theirs.max_position_embeddings,
        rope_base=base,
        rope_scaling=scaling,
        bias=theirs.attention_bias,
        eps=theirs.rms_norm_eps,
        attention_dropout=theirs.attention_dropout,
        init_std=theirs.initializer_range,
        tied=tied,
    )


def _rope(theirs: Any) -> tuple[float, tuple[str, float] | None]:
    """Return the base and the scaling. They turn the halves of a head against each other, as `pairing="half"`."""
    old = {"rope_theta": getattr(theirs, "rope_theta", None), **(getattr(theirs, "rope_scaling", None) or {})}
    rope = getattr(theirs, "rope_parameters", None) or old
    kind = checks.choice("rope_type", rope.get("rope_type", "default"), ("default", "linear"))
    return float(rope["rope_theta"]), None if kind == "default" else ("linear", float(rope["factor"]))


def entries(c: ModelConfig) -> Iterator[Entry]:
    """Give the correspondence of all weights."""
    sizes = (c.num_heads * c.d_k, c.kv_heads * c.d_k, c.kv_heads * c.d_k)
    yield plain("embedding.tokens.weight", "model.embed_tokens.weight")
    for i in range(c.num_layers):
        ours, theirs = f"stack.blocks.{i}", f"model.layers.{i}"
        attention, network = f"{theirs}.self_attn", f"{theirs}.mlp"
        qkv = (f"{attention}.q_proj", f"{attention}.k_proj", f"{attention}.v_proj")
        yield from norm(f"{ours}.attention_norm", f"{theirs}.input_layernorm", bias=False)
        yield from linear(f"{ours}.attention.qkv", *qkv, bias=c.bias, sizes=sizes)
        yield from linear(f"{ours}.attention.out", f"{attention}.o_proj", bias=c.bias)
        yield from norm(f"{ours}.network_norm", f"{theirs}.post_attention_layernorm", bias=False)
        up = (f"{network}.gate_proj", f"{network}.up_proj")
        yield from linear(f"{ours}.network.up", *up, bias=c.bias, sizes=(c.d_ff, c.d_ff))
        yield from linear(f"{ours}.network.down", f"{network}.down_proj", bias=c.bias)
    yield from norm("stack.norm", "model.norm", bias=False)
    if not c.tied:
        yield plain("head.weight", "lm_head.weight")


def shared(c: ModelConfig) -> dict[str, str]:
    """Return their names that repeat a tensor, and the name of the tensor."""
    return {"lm_head.weight": "model.embed_tokens.weight"} if c.tied else {}
