"""Layers that keep keys and values of earlier calls: called piece by piece, they give what one call gives."""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.caches.stored import advance, find_count, make_cache, read_count
from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.configs import LAYER_INDICES
from veriformer.verify.forms.holding import first
from veriformer.verify.forms.interleaving import nearly_equal
from veriformer.verify.forms.meanings import Parameters
from veriformer.verify.forms.rotation import POSITIONS

_FLAGS = ("use_cache", "use_kv_cache", "cache", "kv_cache")
_PAST = (
    *("layer_past", "past_key_value", "past_key_values", "past_kv", "past", "kv_cache", "cache", "layer_cache"),
    *("past_state", "past_kvs", "kv_cache_entry"),
)

FLAG, RETURNED, GIVEN, STARTS, PLACES, FILLED, RECALLED = WAYS = (
    "told to keep them",
    "given what it returned",
    "given a cache that it updates",
    "told where it starts",
    "told the places of its tokens",
    "given a dict that it fills",
    "given a dict of what its parts gave",
)
"""Ways in which a layer is told of the calls before."""

OF_CONTEXT = (FILLED, RECALLED)
"""Ways in which keys and values of a context are kept, which every call reads whole."""

SINGLE = 3
"""Tokens that come one by one, behind a piece of all others."""


@dataclass(frozen=True)
class Part:
    """The queries of one of several calls, and up to which key they see. whole: whether it is the only call.

    max_length: of the buffer that holds the keys, where masks are as wide.
    """

    first: int
    stop: int
    keys: int
    whole: bool = True
    max_length: int = 0

    @property
    def queries(self) -> slice:
        """Their places."""
        return slice(self.first, self.stop)

    def crop_mask(self, every: Tensor) -> Tensor:
        """Return its part of a boolean mask ``[B, n_q, n_k]`` of all queries and keys."""
        own = every[:, self.queries, : self.keys]
        return nn.functional.pad(own, (0, max(0, self.max_length - self.keys)))


Arguments = Callable[[Part], dict[str, Any]]
"""The arguments of the call of a part, without what tells of the calls before."""


def list_ways(parameters: Parameters, start: str | None) -> Iterator[tuple[str, str]]:
    """Yield the ways in which a call with these parameters may tell of those before, each with its parameter."""
    for name, p in parameters.items():
        if name in _FLAGS and p.default is False:
            yield FLAG, name
        if name in _PAST and p.default in (None, p.empty):
            yield from ((way, name) for way in (RETURNED, GIVEN, FILLED, RECALLED))
        if name in POSITIONS and p.default is None:
            yield PLACES, name
    if start is not None:
        yield STARTS, start


def find_parameter(way: str, parameters: Parameters, start: str | None) -> str:
    """Return the parameter by which a layer gets earlier calls."""
    return next(name for one, name in list_ways(parameters, start) if one == way)


def split_calls(way: str, n_q: int, n_k: int, max_length: int = 0) -> list[Part]:
    """Return the calls in which queries come: most of them at once, the last ones one by one."""
    edges = [0, *range(max(1, n_q - SINGLE), n_q + 1)]
    pairs = itertools.pairwise(edges)
    return [Part(a, b, n_k if way in OF_CONTEXT else b, whole=False, max_length=max_length) for a, b in pairs]


@dataclass(frozen=True)
class Layer:
    """A module with its weights, and the parameter by which it gets earlier calls."""

    module: nn.Module
    way: str
    parameter: str
    candidate: Candidate

    def call_in_pieces(
        self, arguments: Arguments, n_q: int, n_k: int, axis: int, sizes: Mapping[str, Any]
    ) -> list[Tensor]:
        """Return the joined results of the calls of all parts; where it holds the cache itself, also that of a whole
        call after them."""
        with torch.no_grad():
            max_length = self._allocate_cache(sizes)
            found, given = [], self._make_cache(sizes) if self.way == GIVEN else self._make_dict()
            count = find_count(given)
            for part in split_calls(self.way, n_q, n_k, max_length):
                counted = read_count(given, count)
                result = self.module(**arguments(part), **self._cache_arguments(part, given))
                given = result if self.way == RETURNED else given
                if self.way == GIVEN and count and read_count(given, count) == counted:
                    advance(given, count, part.stop - part.first)
                found.append(first(result))
            joined = [torch.cat(found, axis)]
            if self.way == FLAG:
                joined.append(first(self.module(**arguments(Part(0, n_q, n_k)))))
            return joined

    def _make_dict(self) -> Any:
        kept: dict[Any, Any] = {}
        if self.way == RECALLED:
            for part in self.module.children():
                part.register_forward_hook(lambda one, _, result: kept.setdefault(one, result) and None)
        return kept

    def _cache_arguments(self, part: Part, given: Any) -> dict[str, Any]:
        if self.way == FLAG:
            return {self.parameter: True}
        if self.way == STARTS:
            return {self.parameter: part.first}
        if self.way == PLACES:
            return {self.parameter: torch.arange(part.first, part.stop)}
        if self.way == RETURNED:
            return {self.parameter: given[1]} if part.first else {self.parameter: None}
        layers = [name for name in self.candidate.parameters if name in LAYER_INDICES and self.way == GIVEN]
        return {self.parameter: given, **dict.fromkeys(layers, 0)}

    def _allocate_cache(self, sizes: Mapping[str, Any]) -> int:
        """Give a layer the cache that it is to hold, of a class beside it; return how long it is, else 0."""
        empty = [name for name, x in vars(self.module).items() if x is None and "cache" in words(name)]
        if self.way != PLACES or not empty:
            return 0
        setattr(self.module, empty[0], self._make_cache(sizes))
        return int(sizes["length"])

    def _make_cache(self, sizes: Mapping[str, Any]) -> Any:
        """Return an empty cache for one layer, of a class beside it."""
        kinds = {name: x for name, x in self.candidate.siblings().items() if "cache" in words(name)}
        one = next(Candidate(name, x, self.candidate.module) for name, x in kinds.items() if hasattr(x, "update"))
        return make_cache(one, {**sizes, "heads": sizes["kv_heads"], "layers": 1}, next(self.module.parameters()).dtype)


def copy_layer(module: nn.Module, weights: Mapping[str, Tensor], way: str, parameter: str, of: Candidate) -> Layer:
    """Return a copy of a module that has seen nothing, with these weights."""
    other = copy.deepcopy(module)
    with torch.no_grad():
        for name, own in other.named_parameters():
            own.copy_(weights[name])
    return Layer(other.eval(), way, parameter, of)


def answers(layer: Layer, arguments: Arguments, x: Tensor) -> bool:
    """Return whether a layer answers a call with no call before it."""
    with contextlib.suppress(Exception), torch.random.fork_rng(), torch.no_grad():
        layer.module(**arguments(Part(0, x.shape[1], x.shape[1])))
        return True
    return False


def keeps_calls(layer: Callable[[], Layer], arguments: Callable[[Tensor], Arguments], x: Tensor, sizes: Any) -> bool:
    """Return whether a layer gives for the first part what a call of it alone gives, and later parts depend on it.

    Where a context is kept, later parts must not depend on the context that they are given.

    arguments: from the tokens, or the context, of all parts to the arguments of one.
    """
    with contextlib.suppress(Exception), torch.random.fork_rng(), torch.no_grad():
        one, n = layer(), x.shape[1]
        of_context = one.way in OF_CONTEXT
        usual = one.call_in_pieces(arguments(x), n, n, 1, sizes)[0]
        start = split_calls(one.way, n, n)[0]
        alone = Part(0, start.stop, n if of_context else start.stop)
        first_alone = first(layer().module(**arguments(x)(alone)))
        other = x.clone()
        other[:, 0] = -x[:, 0]
        if of_context:
            mixed = layer().call_in_pieces(lambda part: arguments(other if part.first else x)(part), n, n, 1, sizes)[0]
            kept = torch.equal(mixed, usual)
        else:
            changed = layer().call_in_pieces(arguments(other), n, n, 1, sizes)[0]
            kept = bool((changed[:, -1] != usual[:, -1]).any())
        return kept and nearly_equal(usual[:, : start.stop], first_alone)
    return False
