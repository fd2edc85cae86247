"""GPT-2, as `GPT2LMHeadModel` of Hugging Face's transformers names it."""

from collections.abc import Iterator
from typing import Any

from veriformer.impl import checks
from veriformer.impl.interop.entries import Entry, linear, norm, plain
from veriformer.impl.models.config import ModelConfig
from veriformer.impl.models.families import gpt

ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", "relu": "relu"}


def config(theirs: Any, tied: bool) -> ModelConfig:
    """Return our config for theirs."""
    if theirs.scale_attn_by_inverse_layer_idx:
        checks.raise_for(
            "config", "scores of one scale", "scale_attn_by_inverse_layer_idx", "it has no counterpart here"
        )
    return gpt(
        vocab_size=theirs.vocab_size,
        d_model=theirs.n_embd,
        num_layers=theirs.n_layer,
        num_heads=theirs.n_head,
        intermediate_size=theirs.n_inner,
        max_length=theirs.n_positions,
        activation=ACTIVATIONS[checks.choice("activation_function", theirs.activation_function, ACTIVATIONS)],
        eps=theirs.layer_norm_epsilon,
        attention_scale=None if theirs.scale_attn_weights else 1.0,
        dropout=theirs.resid_pdrop,
        attention_dropout=theirs.attn_pdrop,
        init_std=theirs.initializer_range,
        tied=tied,
    )


def entries(c: ModelConfig) -> Iterator[Entry]:
    """Give the correspondence of all weights. Their `Conv1D` has its matrix on the right, as ours."""
    yield plain("embedding.tokens.weight", "transformer.wte.weight")
    yield plain("embedding.positions.weight", "transformer.wpe.weight")
    for i in range(c.num_layers):
        ours, theirs = f"stack.blocks.{i}", f"transformer.h.{i}"
        yield from norm(f"{ours}.attention_norm", f"{theirs}.ln_1", bias=True)
        yield from linear(f"{ours}.attention.qkv", f"{theirs}.attn.c_attn", bias=True, transposed=False)
        yield from linear(f"{ours}.attention.out", f"{theirs}.attn.c_proj", bias=True, transposed=False)
        yield from norm(f"{ours}.network_norm", f"{theirs}.ln_2", bias=True)
        yield from linear(f"{ours}.network.up", f"{theirs}.mlp.c_fc", bias=True, transposed=False)
        yield from linear(f"{ours}.network.down", f"{theirs}.mlp.c_proj", bias=True, transposed=False)
    yield from norm("stack.norm", "transformer.ln_f", bias=True)
    if not c.tied:
        yield plain("head.weight", "lm_head.weight")


def shared(c: ModelConfig) -> dict[str, str]:
    """Return their names that repeat a tensor, and the name of the tensor."""
    return {"lm_head.weight": "transformer.wte.weight"} if c.tied else {}
