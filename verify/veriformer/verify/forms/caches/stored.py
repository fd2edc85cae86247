"""Construction, contents and lengths of caches; where their updates return nothing, the caller reads and counts."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.construction import built

READERS = ("get", "get_kv", "read", "fetch", "retrieve", "view", "get_cache", "current", "get_layer")
_PAIRS = (
    *(("keys", "values"), ("k", "v"), ("key", "value"), ("k_cache", "v_cache"), ("cache_k", "cache_v")),
    *(("key_cache", "value_cache"), ("keys_cache", "values_cache"), ("_k", "_v"), ("_keys", "_values")),
)
"""Usual names of what holds keys, and of what holds values."""

COUNTS = (
    *("length", "size", "seen_tokens", "get_seq_length", "seq_length", "current_length", "seq_len", "cur_len"),
    *("current_len", "cache_len", "cache_length"),
)
"""Usual names of how many tokens a cache holds."""

_DTYPES = ("dtype", "cache_dtype", "torch_dtype")
_ADVANCES = ("advance", "step", "increment", "advance_length", "advance_seq_len", "increment_length")
_BEGINNINGS = ("__init__", "__post_init__", "reset", "clear", "reset_cache", "empty")


def make_cache(candidate: Candidate, sizes: Mapping[str, Any], dtype: torch.dtype) -> Any:
    """Return an empty cache of these sizes, its tensors of a dtype where the constructor takes none."""
    given = {name: dtype for name in _DTYPES if name in candidate.constructor}
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(before if given else dtype)
        made = built(candidate, sizes, given)
    finally:
        torch.set_default_dtype(before)
    return made.to(dtype) if isinstance(made, nn.Module) else made


def read_count(made: Any, name: str) -> int | None:
    """Return the number of tokens in a cache, by its attribute or method of this name."""
    try:
        found = getattr(made, name)
        found = found() if callable(found) else found
        found = found.item() if isinstance(found, Tensor) else found
    except Exception:  # it has none, or counts by layers
        return None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def find_count(made: Any) -> str:
    """Return the attribute or method with which an empty cache reports 0 tokens; empty where there is none."""
    return next((name for name in COUNTS if read_count(made, name) == 0), "")


def read_stored(made: Any, layer: int | None) -> tuple[Tensor, Tensor] | None:
    """Return the keys and values that a cache holds, of a layer where it has several; None where neither a method nor
    a pair of attributes gives them."""
    for name in READERS:
        own = getattr(made, name, None)
        if callable(own) and len(inspect.signature(own).parameters) == (layer is not None):
            return as_pair(own() if layer is None else own(layer))
    for names in _PAIRS:
        if all(hasattr(made, name) for name in names):
            held = [getattr(made, name) for name in names]
            return as_pair(held if layer is None else [each[layer] for each in held])
    return None


def as_pair(found: Any) -> tuple[Tensor, Tensor] | None:
    """Return keys and values, where that is what was given."""
    if isinstance(found, tuple | list) and len(found) == 2 and all(isinstance(x, Tensor) for x in found):
        return found[0], found[1]
    return None


def is_counted_by_caller(made: Any, count: str) -> bool:
    """Return whether a cache has a count that none of its methods sets, but those with which it begins."""
    functions = [x for name, x in vars(type(made)).items() if inspect.isfunction(x) and name not in _BEGINNINGS]
    steps = (step for function in functions for step in dis.get_instructions(function))
    stored = any(step.opname == "STORE_ATTR" and step.argval == count for step in steps)
    return type(vars(made).get(count)) is int and not stored


def advance(made: Any, count: str, n: int) -> None:
    """Count n tokens more, as a caller does after the last layer: by a method where there is one, else by itself where
    no method does."""
    name = next((name for name in _ADVANCES if callable(getattr(made, name, None))), None)
    if name is not None:
        getattr(made, name)(n)
    elif is_counted_by_caller(made, count):
        setattr(made, count, getattr(made, count) + n)
