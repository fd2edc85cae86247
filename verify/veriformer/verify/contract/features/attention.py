"""Features of attention: heads, lengths, masks and hidden values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from veriformer.spec.attention.causal_mask import visible
from veriformer.verify.contract.feature import Arguments, Feature
from veriformer.verify.contract.features.making import Condition, Named, fragile, leaking, number, on, ordinary

_NAMES = {
    "attention": ("q", "k", "v"),
    "linear_attention": ("q", "k", "v"),
    "cached_attention": ("q_new", "k_new", "v_new"),
}
_UNSEEING, _ALL_UNSEEING = "a query that sees no key", "a batch element that sees no key"
NOTHING_SEEN = frozenset((_UNSEEING, _ALL_UNSEEING))
"""Features of calls in which a softmax is of nothing: what comes of it is a convention, and no leak."""

_AXES = {"batch": 0, "heads": 1, "queries": 2, "keys": 3}


def of_attention(operation: str) -> Iterator[Feature]:
    """Yield the features of calls of attention over heads."""
    if operation in _NAMES:
        yield from ordinary(operation, *_heads(*_NAMES[operation]), *_lengths(*_NAMES[operation]))
        yield from fragile(operation, *_degenerate(*_NAMES[operation]))
    if operation == "attention":
        yield from ordinary(operation, *_masks("mask"), *_masks("bias"), *_windows())
        yield from fragile(operation, *_unseeing())
        yield from leaking(operation, *_hidden())
    if operation in ("multi_head_attention", "transformer_block"):
        yield from ordinary(operation, *_counted())
        yield from fragile(operation, (_UNSEEING, _sees_no_token))
    if operation == "cached_attention":
        yield from ordinary(operation, *_cached())


def _heads(q: str, k: str, v: str) -> tuple[Named, ...]:
    return (
        ("grouped heads", lambda a: 1 < a[k].shape[1] < a[q].shape[1]),
        ("one key head for several", lambda a: 1 == a[k].shape[1] < a[q].shape[1]),
        ("several heads", lambda a: a[q].shape[1] > 1),
        ("several batch elements", lambda a: a[q].shape[0] > 1),
        ("d_v ≠ d_k", lambda a: a[v].shape[-1] != a[k].shape[-1]),
        ("d_v > d_k", lambda a: a[v].shape[-1] > a[k].shape[-1]),
        ("d_v < d_k", lambda a: a[v].shape[-1] < a[k].shape[-1]),
    )


def _lengths(q: str, k: str, v: str) -> tuple[Named, ...]:
    return (
        ("n_q ≠ n_k", lambda a: a[q].shape[2] != a[k].shape[2]),
        ("n_q < n_k", lambda a: a[q].shape[2] < a[k].shape[2]),
        ("n_q > n_k", lambda a: a[q].shape[2] > a[k].shape[2]),
        ("several queries", lambda a: a[q].shape[2] > 1),
        ("several keys", lambda a: a[k].shape[2] > 1),
        ("one query", lambda a: a[q].shape[2] == 1),
        ("one key", lambda a: a[k].shape[2] == 1),
        ("more than 64 queries", lambda a: a[q].shape[2] > 64),
        ("more than 64 keys", lambda a: a[k].shape[2] > 64),
        ("more than 128 keys", lambda a: a[k].shape[2] > 128),
        ("n_k no multiple of 16", lambda a: a[k].shape[2] % 16 != 0),
        ("n_q no multiple of 16", lambda a: a[q].shape[2] % 16 != 0),
    )


def _degenerate(q: str, k: str, v: str) -> tuple[Named, ...]:
    return (
        ("no keys", lambda a: a[k].shape[2] == 0),
        ("no queries", lambda a: a[q].shape[2] == 0),
        ("d_k = 1", lambda a: a[k].shape[-1] == 1),
        ("a batch of 0", lambda a: a[q].shape[0] == 0),
    )


def _masks(name: str) -> tuple[Named, ...]:
    """Return features of rank and axes of a mask or bias, aligned to the right with [B, H, n_q, n_k]."""
    ranks: tuple[Named, ...] = tuple((f"a {name} of rank {rank}", _rank(name, rank)) for rank in (2, 3, 4))
    spread: tuple[Named, ...] = tuple(
        (f"a {name} for all {axis}", _axis(name, place, lambda size, full: size == 1 < full))
        for axis, place in _AXES.items()
    )
    own: tuple[Named, ...] = tuple(
        (f"a {name} of its own for each of the {axis}", _axis(name, place, lambda size, full: 1 < size == full))
        for axis, place in _AXES.items()
    )
    own_to_a_bias: tuple[Named, ...] = (
        ("-inf in the bias", lambda a: bool(a["bias"].isneginf().any())),
        ("a bias of another dtype", lambda a: a["bias"].dtype is not a["q"].dtype),
    )
    causal: tuple[Named, ...] = ((f"a {name} and causality", lambda a: a[name] is not None and a["is_causal"]),)
    return (*ranks, *spread, *own, *causal, *(own_to_a_bias if name == "bias" else ()))


def _rank(name: str, rank: int) -> Condition:
    return on(name, lambda x: x.ndim == rank)


def _axis(name: str, place: int, condition: Callable[[int, int], bool]) -> Condition:
    def present(a: Arguments) -> bool:
        full = (*a["q"].shape[:3], a["k"].shape[2])
        axis = place - 4 + a[name].ndim
        return axis >= 0 and condition(a[name].shape[axis], full[place])

    return present


def _windows() -> tuple[Named, ...]:
    return (
        ("a window below the number of keys", lambda a: a["window"] < a["k"].shape[2]),
        ("a window and n_q ≠ n_k", lambda a: a["window"] is not None and a["q"].shape[2] != a["k"].shape[2]),
        ("causality and n_q ≠ n_k", lambda a: a["is_causal"] and a["q"].shape[2] != a["k"].shape[2]),
        ("causality and n_q > n_k", lambda a: a["is_causal"] and a["q"].shape[2] > a["k"].shape[2]),
        ("causality and n_q < n_k", lambda a: a["is_causal"] and a["q"].shape[2] < a["k"].shape[2]),
        ("dropout", lambda a: a["training"] and a["dropout_p"] > 0),
    )


def visible_pairs(a: Arguments) -> Any:
    """Return the visible pairs, [B, H, n_q, n_k], by mask, causality and window; a bias of −inf hides nothing."""
    b, h, n_q, _ = a["q"].shape
    n_k = a["k"].shape[2]
    options = {key: a[key] for key in ("mask", "is_causal", "window") if a.get(key) is not None}
    if "mask" in options:
        options["mask"] = np.asarray(options["mask"].cpu())
    return np.broadcast_to(visible(n_q, n_k, **options), (b, h, n_q, n_k))


def _unseeing() -> tuple[Named, ...]:
    return (
        (_UNSEEING, lambda a: not visible_pairs(a).any(-1).all()),
        (_ALL_UNSEEING, lambda a: visible_pairs(a).size > 0 and not visible_pairs(a).any((1, 2, 3)).all()),
        ("a bias row of -inf", lambda a: bool(a["bias"].isneginf().all(-1).any())),
    )


def _hidden() -> tuple[Named, ...]:
    """Return features of NaN and inf in keys and values that some query does not see."""
    return tuple(
        (f"{word} in a hidden {what}", _poisoned(name, test))
        for name, what in (("k", "key"), ("v", "value"))
        for word, test in (("NaN", torch.isnan), ("inf", torch.isinf))
    )


def _poisoned(name: str, test: Callable[[torch.Tensor], torch.Tensor]) -> Condition:
    def present(a: Arguments) -> bool:
        bad = test(a[name]).any(-1)
        if not bad.any():
            return False
        repeats = a["q"].shape[1] // bad.shape[1]
        hidden = ~visible_pairs(a).all(2)
        return bool((hidden & bad.repeat_interleave(repeats, 1).cpu().numpy()).any())

    return present


def _counted() -> tuple[Named, ...]:
    """Return features of heads counted by arguments."""
    return (
        ("grouped heads", lambda a: 1 < a["num_kv_heads"] < a["num_heads"]),
        ("one key head for several", lambda a: 1 == a["num_kv_heads"] < a["num_heads"]),
        ("several heads", lambda a: a["num_heads"] > 1),
        ("heads narrower or wider than d / H", lambda a: a["w_q"].shape[1] != a["x"].shape[-1]),
        ("heads of odd width", lambda a: a["w_q"].shape[1] // a["num_heads"] % 2 == 1),
        ("d_v ≠ d_k", lambda a: _value_width(a) != a["w_q"].shape[1] // a["num_heads"]),
        ("d_out ≠ d", lambda a: a["w_o"].shape[1] != a["x"].shape[-1]),
        ("a context of another width", lambda a: a["context"].shape[-1] != a["x"].shape[-1]),
        ("a context of another length", lambda a: a["context"].shape[1] != a["x"].shape[1]),
        ("a masked token", lambda a: not bool(a["attention_mask"].bool().all())),
        ("a sequence of one token", lambda a: a["x"].shape[-2] == 1),
        ("several tokens", lambda a: a["x"].shape[-2] > 1),
        ("several batch elements", lambda a: a["x"].shape[0] > 1),
    )


def _sees_no_token(a: Arguments) -> bool:
    """Return whether some query sees no key because of padding, causality or both, as with padding on the left."""
    x, mask, context = a["x"], a.get("attention_mask"), a.get("context")
    keys = (x if context is None else context).shape[:2]
    real = torch.ones(keys, dtype=torch.bool) if mask is None else mask.bool()
    if not a.get("is_causal"):
        return not bool(real.any(-1).all())
    first = real.shape[1] - x.shape[1]  # the last key that the first query may see
    before = real.cumsum(-1) > 0
    return not bool(before[:, max(0, first) :].all()) or first < 0


def _value_width(a: Arguments) -> int:
    return int(a["w_v"].shape[1]) // int(a.get("num_kv_heads") or a["num_heads"])


def _cached() -> tuple[Named, ...]:
    return (
        ("a past", lambda a: len(a["past"]) > 0),
        ("no past", lambda a: len(a["past"]) == 0),
        ("several new tokens", lambda a: a["q_new"].shape[2] > 1),
        ("several new tokens after a past", lambda a: a["q_new"].shape[2] > 1 and len(a["past"]) > 0),
        ("a reordered cache", lambda a: a["order"] is not None),
        ("a cache that was reset", lambda a: bool(a["forget"])),
        ("a cache used to its end", lambda a: _tokens(a) == a["max_length"]),
        ("a window shorter than the past", lambda a: number(a["window"]) and a["window"] < _tokens(a)),
    )


def _tokens(a: Arguments) -> int:
    return int(sum(x.shape[2] for x in a["past"][::2]) + a["k_new"].shape[2])
