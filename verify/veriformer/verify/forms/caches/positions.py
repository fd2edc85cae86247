"""Caches with ``update(k, v)`` or ``update(positions, k, v)``, which returns its content, or keeps it as attributes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.caches.stored import (
    advance,
    as_pair,
    find_count,
    is_counted_by_caller,
    make_cache,
    read_count,
    read_stored,
)
from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.construction import takes_size
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.signatures import by_words, roles

_TENSORS = {
    "k": ("k_val", "k", "k_new", "keys", "key", "xk", "key_states", "k_in", "new_k", "key_cache", "k_cur", "new_keys"),
    "v": ("v_val", "v", "v_new", "values", "value", "xv", "value_states", "v_in", "new_v", "v_cur", "new_values"),
}
_PLACES = {
    "positions": ("input_pos", "pos", "positions", "cache_position", "position", "start_pos", "offset", "cache_pos"),
    "layer": ("layer_idx", "layer_id", "layer", "layer_index"),
}
_UPDATES = ("update", "append", "update_cache", "forward", "__call__")
_WORDS_OF_UPDATES = frozenset(("update", "append", "insert", "add", "put", "store", "write", "push", "extend"))
_RESETS = ("reset", "clear", "reset_cache", "empty")
_ORDERS = ("reorder", "reorder_cache", "batch_select_indices")
LAYOUTS = ("[B,H,n,d]", "[B,n,H,d]")
LAYERS, GROWS, ROLLS = 2, "grows", "rolls"
"""Number of layers that a cache is made for; length of a cache that is made for one token and grows, and of one that
drops its oldest token for each beyond its capacity."""

ONE = "one text"
"""The reading of a cache that has no axis of texts: its batch is 1."""

POSITIONS = ("each", "the first")
"""Positions that an update is given: of each token, or of the first one."""


def _find_update(candidate: Candidate) -> tuple[str, dict[str, str]] | None:
    """Return the method that takes keys and values, and its parameters by role; None where there is none."""
    own = (name for name in dir(candidate.thing) if name[:1] != "_" and _WORDS_OF_UPDATES & set(words(name)))
    for method in dict.fromkeys((*_UPDATES, *own)):
        parameters = candidate.parameters_of(method)
        names = roles(parameters, by_words(parameters, _TENSORS), _PLACES)
        if names is not None:
            return method, names
    return None


def _match(candidate: Candidate) -> Match | None:
    if not candidate.is_class or not {"cache"} & set(candidate.words):
        return None
    found = _find_update(candidate)
    if found is None:
        return None
    readings: dict[str, tuple[str, ...]] = {"layout": LAYOUTS}
    readings |= {"positions": POSITIONS} if "positions" in found[1] else {}
    grows = takes_size(candidate, "length") and any(
        _grows(candidate, dict(zip(readings, one, strict=True))) for one in itertools.product(*readings.values())
    )
    alone = not takes_size(candidate, "batch") and _takes_one_text(candidate, readings)
    rolls = not grows and takes_size(candidate, "length") and "positions" not in readings and _rolls(candidate)
    length = {"length": (GROWS if grows else ROLLS,)} if grows or rolls else {}
    readings |= length | ({"texts": (ONE,)} if alone else {})
    return Match(True, readings, (f"it is made for {ONE}",) if alone else ())


def _takes_one_text(candidate: Candidate, readings: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether a cache whose batch size is not given accepts one text, and refuses two."""
    return any(
        _answers(candidate, one, 1) and not _answers(candidate, one, 2)
        for one in (dict(zip(readings, each, strict=True)) for each in itertools.product(*readings.values()))
    )


def _answers(candidate: Candidate, readings: Readings, texts: int) -> bool:
    shape = texts, 2, 3, 4
    try:
        _made(candidate, readings, shape, torch.float32, grows=False).update(torch.ones(shape), torch.ones(shape))
    except Exception:  # refused, for whatever reason
        return False
    return True


def _grows(candidate: Candidate, readings: Readings) -> bool:
    """Return whether a cache that is made for fewer tokens gives all that it was given back."""
    try:
        cache = _made(candidate, readings, (1, 1, 2, 4), torch.float32, grows=True)
        cache.max_length = 3
        given = [cache.update(torch.ones(1, 1, n, 4), torch.ones(1, 1, n, 4))[0] for n in (2, 1)]
    except Exception:  # refused, for whatever reason
        return False
    return given[-1].shape == (1, 1, 3, 4)


def _rolls(candidate: Candidate) -> bool:
    """Return whether a cache that is full takes a token more, and drops its oldest for it."""
    try:
        cache = _made(candidate, {"layout": LAYOUTS[0]}, (1, 1, 2, 4), torch.float32, grows=False)
        cache.rolls = True
        tokens = [torch.full((1, 1, 1, 4), x) for x in (1.0, 2.0, 3.0)]
        given = [cache.update(token, token)[0][0, 0, :, 0].tolist() for token in tokens]
    except Exception:  # refused, for whatever reason
        return False
    return [sorted(x) for x in given] == [[1.0], [1.0, 2.0], [2.0, 3.0]]


@dataclass
class _Cache:
    """A cache of the file, and the number of tokens that it holds.

    max_length: for how many it is asked. grows: whether it takes more, or its constructor is not told that. rolls:
    whether it drops its oldest tokens when it is full. most: maximum number of tokens that such a cache is given.
    make_for: from a length to another cache, of one that takes more than it is made for.
    """

    candidate: Candidate
    readings: Readings
    made: Any
    max_length: int
    grows: bool
    rolls: bool = False
    most: float = math.inf
    make_for: Callable[[int], _Cache] | None = None
    _given: int = 0
    _counts: str = ""

    def __post_init__(self) -> None:
        self._counts = find_count(self.made)

    @property
    def length(self) -> int:
        """Return the number of tokens held: as the cache itself counts them, where it does so from 0 on."""
        counted = None if self.rolls else read_count(self.made, self._counts)
        return self._given if counted is None else counted

    def update(self, k_new: Tensor, v_new: Tensor) -> tuple[Tensor, Tensor]:
        """Append, and give what is held of the buffer that comes back."""
        (method, names), n = _find_update(self.candidate) or ("", {}), k_new.shape[2]
        if self.make_for is not None and not self._given:  # what is held is moved when the next tokens come
            self.made, self.make_for = self.make_for(max(n, 1)).made, None
        if self.grows and self._given + n > self.max_length:
            raise NotOffered("max_length: the cache grows")
        if self.rolls and self._given + n > min(self.most, self.max_length if n > 1 else math.inf):
            raise NotOffered("k_new: the cache drops its oldest tokens, and takes a token at a time when it is full")
        counted = "positions" in names or ("layer" in names and is_counted_by_caller(self.made, self._counts))
        if self._given + n > self.max_length and counted and not self.rolls:
            raise NotOffered("max_length: the caller counts the tokens, and checks whether there is room")
        at: Any = torch.arange(self._given, self._given + n)
        at = at if self.readings.get("positions") == POSITIONS[0] else self._given
        places = {names["positions"]: at} if "positions" in names else {}

        def of_layer(layer: int, sign: int) -> tuple[Tensor, Tensor] | None:
            theirs = {names["k"]: self._to_layout(sign * k_new), names["v"]: self._to_layout(sign * v_new)}
            given = places | ({names["layer"]: layer} if "layer" in names else {})
            whole = getattr(self.made, method)(**theirs, **given)
            return read_stored(self.made, layer if "layer" in names else None) if whole is None else as_pair(whole)

        before, whole = read_count(self.made, self._counts), of_layer(0, 1)
        if whole is None:
            raise NotOffered(f"{method}: it gives no keys and values")
        k, v = (self._to_layout(x)[:, :, : self._given + n].clone() for x in whole)
        if "layer" in names:  # tokens are counted when the last layer has been given them
            of_layer(1, -1)
            if before is not None and read_count(self.made, self._counts) == before:
                advance(self.made, self._counts, n)
        self._given += n
        return k, v

    def reorder(self, index: Tensor) -> None:
        """Reorder the elements of the batch, by the cache's own method."""
        self._find_method("reorder", _ORDERS)(index)

    def reset(self) -> None:
        """Begin again, by the cache's own method."""
        self._find_method("reset", _RESETS)()
        self._given = 0

    def _find_method(self, what: str, names: tuple[str, ...]) -> Callable[..., Any]:
        found = next((name for name in names if callable(getattr(self.made, name, None))), None)
        if found is None:
            raise NotOffered(f"{what}: the cache has none")
        own: Callable[..., Any] = getattr(self.made, found)
        return own

    def _to_layout(self, x: Tensor) -> Tensor:
        return x if self.readings["layout"] == LAYOUTS[0] else x.transpose(1, 2)


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Any]:
    grows, rolls = (readings.get("length") == kind for kind in (GROWS, ROLLS))

    def call(
        batch: int,
        num_kv_heads: int,
        max_length: int,
        head_dim: int,
        dtype: torch.dtype,
        window: int | None = None,
    ) -> _Cache:

        def make_for(length: int) -> _Cache:
            return _made(candidate, readings, (batch, num_kv_heads, length, head_dim), dtype, grows=grows)

        if batch != 1 and readings.get("texts") == ONE:
            raise NotOffered(f"batch: the cache is made for {ONE}")
        cache = make_for(1 if grows else window or max_length)
        cache.make_for, cache.rolls = make_for if grows else None, rolls
        cache.max_length, cache.most = window or max_length, max_length
        return cache

    return as_operation("kv_cache", call, ["window"] if rolls else [])


def _made(
    candidate: Candidate, readings: Readings, shape: tuple[int, int, int, int], dtype: torch.dtype, *, grows: bool
) -> _Cache:
    """Return an empty cache for so many texts, heads, tokens and entries of a head."""
    batch, heads, length, head_dim = shape
    sizes = {"batch": batch, "heads": heads, "kv_heads": heads, "length": length, "layers": LAYERS}
    made = make_cache(candidate, {**sizes, "head_dim": head_dim}, dtype)
    return _Cache(candidate, readings, made, length, grows=grows or not takes_size(candidate, "length"))


FORM = Form(
    name="caches/positions",
    operation="kv_cache",
    says="update(k, v) or update(positions, k, v), which gives the buffer or what it holds, or stores it to be read",
    neutral=("positions", "texts"),
    match=_match,
    bind=_bind,
)
