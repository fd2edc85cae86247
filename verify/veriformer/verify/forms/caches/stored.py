"""Contents and lengths of caches whose updates return nothing: the caller reads and counts them."""

from __future__ import annotations

import dis
import inspect
from typing import Any

from torch import Tensor

READERS = ("get", "get_kv", "read", "fetch", "retrieve", "view", "get_cache", "current", "get_layer")
_PAIRS = (
    *(("keys", "values"), ("k", "v"), ("key", "value"), ("k_cache", "v_cache"), ("cache_k", "cache_v")),
    *(("key_cache", "value_cache"), ("keys_cache", "values_cache"), ("_k", "_v"), ("_keys", "_values")),
)
"""Usual names of what holds keys, and of what holds values."""

_ADVANCES = ("advance", "step", "increment", "advance_length", "advance_seq_len", "increment_length")
_BEGINNINGS = ("__init__", "__post_init__", "reset", "clear", "reset_cache", "empty")


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
