"""Names of operations on code that no form reads: that it is not judged has to be said."""

from __future__ import annotations

import enum

import torch
from torch import nn

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.rotation import STARTS

_MASKS_AND_CACHES = {"mask": "causal_mask", "masks": "causal_mask", "cache": "kv_cache", "kvcache": "kv_cache"}
"""By a word of a name, the operation by which something of that name would be judged."""

_OF_ARRAYS = {
    **dict.fromkeys(("attention", "attn"), "multi_head_attention"),
    **dict.fromkeys(("layernorm", "layer norm"), "layer_norm"),
    **dict.fromkeys(("rmsnorm", "rms norm"), "rms_norm"),
    **dict.fromkeys(("feed forward", "feedforward", "ffn"), "feed_forward"),
    "cross entropy": "cross_entropy",
    "embedding": "token_embedding",
    "softmax": "softmax",
    "adam": "adam",
    "adamw": "adamw",
    "sgd": "gradient_descent",
}
"""By words of its name, the operation that a class over arrays of another library would be judged by."""

_COMPUTING = ("forward", "__call__", "step", "update")


def named_and_unread(candidate: Candidate) -> tuple[str, str] | None:
    """Return the operation that something is called by which no form reads, and why it is told; None for anything else.

    A mask, a cache, attention that is given one: who sees whom is what is most often wrong. A class over arrays, whose
    derivatives are written by hand.
    """
    if candidate.is_class and issubclass(candidate.thing, enum.Enum):
        return None
    operation = next((_MASKS_AND_CACHES[word] for word in candidate.words if word in _MASKS_AND_CACHES), None)
    said = f"no form reads it as {operation}, or as what gives one"
    if operation is None and _ATTENTION & set(candidate.words) and any(map(_tells_who_sees, candidate.parameters)):
        operation, said = "multi_head_attention", "no form reads it, with the mask or the cache that it is given"
    if operation is None and _computes_over_arrays(candidate):
        name = " ".join(candidate.words)
        operation = next((one for words, one in _OF_ARRAYS.items() if f" {words} " in f" {name} "), None)
        said = "no form reads it as a class over arrays"
    return None if operation is None else (operation, said)


def _computes_over_arrays(candidate: Candidate) -> bool:
    """Return whether a class has a call or a step of its own and is none of PyTorch's."""
    ours = candidate.is_class and not issubclass(candidate.thing, nn.Module | torch.optim.Optimizer)
    return ours and any(name in vars(candidate.thing) for name in _COMPUTING)


_ATTENTION = frozenset(("attention", "attn"))


def _tells_who_sees(parameter: str) -> bool:
    """Return whether a parameter is by its name a mask, a cache, or where the tokens behind one stand."""
    return bool(_MASKS_AND_CACHES.keys() & set(words(parameter))) or parameter in STARTS
