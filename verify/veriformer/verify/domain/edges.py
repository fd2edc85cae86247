"""Calls at the edge of what is ordinary, which a draw seldom makes: nothing to ask, nothing to see, nothing at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from veriformer.verify.domain.feature import Arguments


def _of_attention(a: Arguments) -> Iterator[Arguments]:
    """Of plain queries, keys and values: none of one of them, and queries that see no key."""
    keys = {name: a[name] for name in ("k", "v")}
    yield {**a, "q": a["q"][:, :, :0]}
    yield {**a, **{name: x[:, :, :0] for name, x in keys.items()}}
    yield {name: a[name][:0] for name in ("q", "k", "v")}
    yield {**a, "q": torch.cat((a["q"], a["q"]), 2), "is_causal": True}
    yield {**a, "mask": torch.zeros(a["q"].shape[2], a["k"].shape[2], dtype=torch.bool, device=a["q"].device)}


_EDGES: Mapping[str, Callable[[Any], Iterator[Arguments]]] = {"attention": _of_attention}


def edges(operation: str, arguments: Arguments) -> Iterator[Arguments]:
    """From a plain call those at its edges; none where the draws make them all."""
    return _EDGES[operation](arguments) if operation in _EDGES else iter(())
