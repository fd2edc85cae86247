"""Models that hold their caches inside, and take the position of a call's tokens as an argument."""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

SETUPS = ("setup_caches", "setup_cache", "set_kv_cache", "init_caches", "init_cache", "init_kv_cache")
"""Methods that allocate the cache of keys and values before the first call."""

_BATCH = ("max_batch_size", "batch_size", "batch", "bsz", "bs")
_LENGTH = ("max_seq_length", "max_seq_len", "decoder_max_seq_len", "seq_len", "length", "max_length", "max_len")
CACHE_LENGTH = 128
"""Tokens for which a cache is allocated: the longest text of the model that is built."""


@dataclass(frozen=True)
class Placing:
    """Positions of a call. position: the name of the argument. vector: whether it is a tensor of all positions, or else
    the first one. setup: the method that allocates the cache, if any.

    length: the argument of a call that says how long the cache is. needed: whether a call without a cache needs it too.
    """

    position: str
    vector: bool = True
    setup: str = ""
    length: str = ""
    needed: bool = False


@dataclass
class Placed:
    """A cache: the model that holds it, and how many tokens it has seen. Its parameters are those of the model that was
    asked."""

    model: nn.Module
    length: int


def placings(model: nn.Module, position: str) -> list[Placing]:
    """Return the ways in which positions may be given to a model by that argument."""
    setup = next((name for name in SETUPS if callable(getattr(model, name, None))), "")
    known = inspect.signature(model.forward).parameters
    length = next((name for name in _LENGTH if name in known), "")
    return [Placing(position, vector, setup, length, needed) for needed in (False, True) for vector in (True, False)]


def begun(model: nn.Module, how: Placing, batch: int) -> Placed:
    """Return a model of the same parameters, with a cache for so many texts, that has seen nothing: each text has its
    own.
    """
    other = copy.deepcopy(model, {id(p): p for p in model.parameters()})
    if how.setup:
        method = getattr(other, how.setup)
        known = inspect.signature(method).parameters
        like = next(p for p in model.parameters() if p.is_floating_point())
        given: dict[str, Any] = {name: batch for name in _BATCH if name in known}
        given |= {name: CACHE_LENGTH for name in _LENGTH if name in known}
        given |= {"dtype": like.dtype} if "dtype" in known else {}
        with torch.no_grad():
            method(**given)
    return Placed(other, 0)


def goes_on(model: nn.Module, how: Placing, past: Placed, arguments: dict[str, Any], n: int) -> tuple[Any, Placed]:
    """Call the model with n tokens behind those of a cache; return the result and the cache after it.

    Hooks of the model that is asked are those of the one that holds the cache.
    """
    asked = dict(model.named_modules())
    for name, module in past.model.named_modules():
        if name in asked:
            module._forward_hooks = asked[name]._forward_hooks
            module._forward_pre_hooks = asked[name]._forward_pre_hooks
    places: Tensor | int = torch.arange(past.length, past.length + n) if how.vector else past.length
    given = {**arguments, how.position: places, **({how.length: CACHE_LENGTH} if how.length else {})}
    return past.model(**given), Placed(past.model, past.length + n)
