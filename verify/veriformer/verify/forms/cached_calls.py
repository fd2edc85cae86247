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

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.construction import built
from veriformer.verify.forms.holding import first
from veriformer.verify.forms.meanings import Parameters
from veriformer.verify.forms.rotation import POSITIONS

_FLAGS = ("use_cache", "use_kv_cache", "cache", "kv_cache")
_PAST = (
    *("layer_past", "past_key_value", "past_key_values", "past_kv", "past", "kv_cache", "cache", "layer_cache"),
    *("past_state", "past_kvs", "kv_cache_entry"),
)

FLAG, RETURNED, STARTS, PLACES, FILLED, RECALLED = WAYS = (
    "told to keep them",
    "given what it returned",
    "told where it starts",
    "told the places of its tokens",
    "given a dict that it fills",
    "given a dict of what its parts gave",
)
"""How a layer is told of the calls before."""

OF_CONTEXT = (FILLED, RECALLED)
"""Ways in which keys and values of a context are kept, which every call reads whole."""

SINGLE = 3
"""Tokens that come one by one, behind a piece of all others."""


@dataclass(frozen=True)
class Part:
    """The queries of one of several calls, and up to which key they see. whole: whether it is the only call.

    room: the length of the buffer that holds the keys, where masks are as wide.
    """

    first: int
    stop: int
    keys: int
    whole: bool = True
    room: int = 0

    @property
    def queries(self) -> slice:
        """Their places."""
        return slice(self.first, self.stop)

    def seen(self, every: Tensor) -> Tensor:
        """Its part of what each query sees of each key, ``[B, n_q, n_k]``."""
        own = every[:, self.queries, : self.keys]
        return nn.functional.pad(own, (0, max(0, self.room - self.keys)))


Arguments = Callable[[Part], dict[str, Any]]
"""The arguments of the call of a part, without what tells of the calls before."""


def ways(parameters: Parameters, start: str | None) -> Iterator[tuple[str, str]]:
    """Yield the ways in which a call with these parameters may tell of those before, each with its parameter."""
    for name, p in parameters.items():
        if name in _FLAGS and p.default is False:
            yield FLAG, name
        if name in _PAST and p.default in (None, p.empty):
            yield from ((way, name) for way in (RETURNED, FILLED, RECALLED))
        if name in POSITIONS and p.default is None:
            yield PLACES, name
    if start is not None:
        yield STARTS, start


def parameter_of(way: str, parameters: Parameters, start: str | None) -> str:
    """Return the parameter by which a way tells of earlier calls."""
    return next(name for one, name in ways(parameters, start) if one == way)


def parts(way: str, n_q: int, n_k: int, room: int = 0) -> list[Part]:
    """The calls in which queries come: most of them at once, the last ones by themselves."""
    edges = [0, *range(max(1, n_q - SINGLE), n_q + 1)]
    pairs = itertools.pairwise(edges)
    return [Part(a, b, n_k if way in OF_CONTEXT else b, whole=False, room=room) for a, b in pairs]


@dataclass(frozen=True)
class Layer:
    """A module with its weights, and the way in which it is told, by this parameter, of earlier calls."""

    module: nn.Module
    way: str
    parameter: str
    candidate: Candidate

    def in_pieces(self, arguments: Arguments, n_q: int, n_k: int, axis: int, sizes: Mapping[str, Any]) -> list[Tensor]:
        """What the calls of all parts give together; where it holds the cache itself, also what a whole call after
        them gives."""
        with torch.no_grad():
            room = self._allocated(sizes)
            found, given = [], self._begun()
            for part in parts(self.way, n_q, n_k, room):
                result = self.module(**arguments(part), **self._told(part, given))
                given = result if self.way == RETURNED else given
                found.append(first(result))
            joined = [torch.cat(found, axis)]
            if self.way == FLAG:
                joined.append(first(self.module(**arguments(Part(0, n_q, n_k)))))
            return joined

    def _begun(self) -> Any:
        kept: dict[Any, Any] = {}
        if self.way == RECALLED:
            for part in self.module.children():
                part.register_forward_hook(lambda one, _, result: kept.setdefault(one, result) and None)
        return kept

    def _told(self, part: Part, given: Any) -> dict[str, Any]:
        if self.way == FLAG:
            return {self.parameter: True}
        if self.way == STARTS:
            return {self.parameter: part.first}
        if self.way == PLACES:
            return {self.parameter: torch.arange(part.first, part.stop)}
        if self.way == RETURNED:
            return {self.parameter: given[1]} if part.first else {self.parameter: None}
        return {self.parameter: given}

    def _allocated(self, sizes: Mapping[str, Any]) -> int:
        """Give a layer the cache that it is to hold, of a class beside it; return how long it is, else 0."""
        empty = [name for name, x in vars(self.module).items() if x is None and "cache" in words(name)]
        if self.way != PLACES or not empty:
            return 0
        kinds = {name: x for name, x in self.candidate.siblings().items() if "cache" in words(name)}
        one = next(Candidate(name, x, self.candidate.module) for name, x in kinds.items() if hasattr(x, "update"))
        like = next(self.module.parameters())
        made = built(one, {**sizes, "heads": sizes["kv_heads"]}, {"dtype": like.dtype})
        setattr(self.module, empty[0], made.to(like.dtype) if isinstance(made, nn.Module) else made)
        return int(sizes["length"])


def layer_with(module: nn.Module, weights: Mapping[str, Tensor], way: str, parameter: str, of: Candidate) -> Layer:
    """Return a copy of a module that has seen nothing, with these weights."""
    other = copy.deepcopy(module)
    with torch.no_grad():
        for name, own in other.named_parameters():
            own.copy_(weights[name])
    return Layer(other.eval(), way, parameter, of)


def understood(layer: Callable[[], Layer], arguments: Callable[[Tensor], Arguments], x: Tensor, sizes: Any) -> bool:
    """Return whether a layer gives of the first part what a call of it alone gives, and later ones hang on it.

    Of a context that is kept, later parts must not hang on what they are given. arguments: from the tokens, or from the
    context, that are given to those of a part.
    """
    with contextlib.suppress(Exception), torch.random.fork_rng(), torch.no_grad():
        one, n = layer(), x.shape[1]
        of_context = one.way in OF_CONTEXT
        usual = one.in_pieces(arguments(x), n, n, 1, sizes)[0]
        start = parts(one.way, n, n)[0]
        alone = Part(0, start.stop, n if of_context else start.stop)
        first_alone = first(layer().module(**arguments(x)(alone)))
        other = x.clone()
        other[:, 0] = -x[:, 0]
        if of_context:
            mixed = layer().in_pieces(lambda part: arguments(other if part.first else x)(part), n, n, 1, sizes)[0]
            kept = torch.equal(mixed, usual)
        else:
            changed = layer().in_pieces(arguments(other), n, n, 1, sizes)[0]
            kept = bool((changed[:, -1] != usual[:, -1]).any())
        return kept and near(usual[:, : start.stop], first_alone)
    return False


def near(found: Tensor, expected: Tensor) -> bool:
    """Whether two results are one in half of their digits."""
    if found.shape != expected.shape or not bool(found.isfinite().all()):
        return False
    half = torch.finfo(found.dtype).eps ** 0.5
    return bool((found - expected).abs().max() <= half * expected.abs().max())


class _Turns(torch.autograd.Function):
    """Rows of several results by turns, with the gradients of the first."""

    @staticmethod
    def forward(ctx: Any, whole: Tensor, *others: Tensor) -> Tensor:
        results = (whole, *others)
        rows = torch.stack([x.reshape(-1, x.shape[-1]) for x in results])
        turn = torch.arange(rows.shape[1])
        return rows[turn % len(results), turn].reshape(whole.shape)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0], *[None] * (len(ctx.needs_input_grad) - 1)


def by_turns(whole: Tensor, others: list[Tensor]) -> Tensor:
    """Return the rows of one call and of calls in pieces by turns, so that all are judged; gradients of the one."""
    same = [x for x in others if x.shape == whole.shape and x.dtype == whole.dtype]
    found: Tensor = _Turns.apply(whole, *same)  # type: ignore[no-untyped-call]
    return found if same else whole
