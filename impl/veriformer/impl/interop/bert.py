"""BERT, as `BertForMaskedLM` of Hugging Face's transformers names it."""

from collections.abc import Iterator
from typing import Any

from veriformer.impl import checks
from veriformer.impl.interop.entries import Entry, linear, norm, plain
from veriformer.impl.models import families
from veriformer.impl.models.config import ModelConfig


def config(theirs: Any, tied: bool) -> ModelConfig:
    """Return our config for theirs."""
    return families.bert(
        vocab_size=theirs.vocab_size,
        d_model=theirs.hidden_size,
        num_layers=theirs.num_hidden_layers,
        num_heads=theirs.num_attention_heads,
        intermediate_size=theirs.intermediate_size,
        max_length=theirs.max_position_embeddings,
        num_segments=theirs.type_vocab_size,
        activation=checks.choice("hidden_act", theirs.hidden_act, ("gelu",)),
        eps=theirs.layer_norm_eps,
        dropout=theirs.hidden_dropout_prob,
        attention_dropout=theirs.attention_probs_dropout_prob,
        init_std=theirs.initializer_range,
        tied=tied,
    )


def entries(c: ModelConfig) -> Iterator[Entry]:
    """Give the correspondence of all weights."""
    d = c.d_model
    table = "bert.embeddings"
    for ours, theirs in (("tokens", "word"), ("positions", "position"), ("segments", "token_type")):
        yield plain(f"embedding.{ours}.weight", f"{table}.{theirs}_embeddings.weight")
    yield from norm("embedding.norm", f"{table}.LayerNorm", bias=True)
    for i in range(c.num_layers):
        ours, theirs = f"stack.blocks.{i}", f"bert.encoder.layer.{i}"
        own = f"{theirs}.attention.self"
        yield from linear(
            f"{ours}.attention.qkv", f"{own}.query", f"{own}.key", f"{own}.value", bias=True, sizes=(d,) * 3
        )
        yield from linear(f"{ours}.attention.out", f"{theirs}.attention.output.dense", bias=True)
        yield from norm(f"{ours}.attention_norm", f"{theirs}.attention.output.LayerNorm", bias=True)
        yield from linear(f"{ours}.network.up", f"{theirs}.intermediate.dense", bias=True)
        yield from linear(f"{ours}.network.down", f"{theirs}.output.dense", bias=True)
        yield from norm(f"{ours}.network_norm", f"{theirs}.output.LayerNorm", bias=True)
    head = "cls.predictions"
    yield from linear("head.transform", f"{head}.transform.dense", bias=True)
    yield from norm("head.norm", f"{head}.transform.LayerNorm", bias=True)
    yield plain("head.bias", f"{head}.bias")
    if not c.tied:
        yield plain("head.weight", f"{head}.decoder.weight")


def shared(c: ModelConfig) -> dict[str, str]:
    """Return their names that repeat a tensor, and the name of the tensor."""
    head = "cls.predictions"
    names = {f"{head}.decoder.bias": f"{head}.bias"}
    return names | ({f"{head}.decoder.weight": "bert.embeddings.word_embeddings.weight"} if c.tied else {})
