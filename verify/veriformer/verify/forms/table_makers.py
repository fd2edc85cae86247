"""Makers of rotary tables that stand beside what turns by them: functions of width and length, and modules."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.construction import built, name_of_size
from veriformer.verify.forms.form import Unfit
from veriformer.verify.forms.frameworks import over_tensors
from veriformer.verify.forms.meanings import Parameters
from veriformer.verify.forms.rotation import BASE, BASES, LONGEST, POSITIONS, STARTS, WORDS
from veriformer.verify.forms.signatures import INPUT, Names, roles

_MAKERS = (
    {"precompute"},
    {"rope", "params"},
    {"rope", "cache"},
    {"freqs"},
    {"cos", "sin"},
    {"sin", "cos"},
    {"rope", "build"},
)
"""Words of functions that say that they make tables."""

_MAY_MAKE = ("rope", "rotary", "freq", "angles", "cis")
"""Beginnings of words of functions that make tables where a call of them gives some."""

_WIDTH = ("dim", "head_dim", "n_elem", "d", "dims", "d_k", "rotary_dim", "hidden_dim", "d_head")
_LENGTHS = "end seq_len max_seq_len context_length length max_position max_len n seq_length max_length T block_size"
_LENGTH = (*_LENGTHS.split(), "max_position_embeddings", "max_seqlen", "maxseqlen", "num_positions")


@dataclass(frozen=True)
class Maker:
    """A function of width and length, or a module built from the width.

    names: its parameters by role. method: the method of the module that makes them; empty for its call.
    """

    candidate: Candidate
    names: Mapping[str, str]
    method: str = ""

    @property
    def told(self) -> str:
        """Return where its tables come from, in words."""
        before = ", asked of it in bfloat16 before" if self._is_told_dtype else ""
        return f"tables by {self.candidate.name}{before}"

    @property
    def _is_told_dtype(self) -> bool:
        """Return whether a call of a module takes the dtype of the tables.

        Modules that are told it by the features alone often keep tables in the dtype of their first call, by which a
        model is used in one dtype.
        """
        return self.candidate.is_class and "dtype" in self.names

    def tables(self, d: int, n: int, base: float | None, dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
        """Return the tables for so many positions, in the dtype of the features on request."""
        if self.candidate.is_class:
            make = self._make(d, base, dtype)
            if self._is_told_dtype:  # as under mixed precision: what a call rounds is not what the next one is given
                _of_module(make, self.names, d, n, 0, torch.bfloat16)
            if "start" in self.names and n > 1:  # in two pieces, as a cache asks for them
                pieces = [
                    _of_module(make, self.names, d, *piece, dtype) for piece in ((n // 2, 0), (n - n // 2, n // 2))
                ]
                return tuple(torch.cat(pair) for pair in zip(*pieces, strict=True))
            return _of_module(make, self.names, d, n, 0, dtype)
        given: dict[str, Any] = {self.names["d"]: d, self.names["n"]: n}
        if base is not None or _is_demanded(self.candidate, self.names.get("base", "")):
            given[self.names["base"]] = BASE if base is None else base
        if "dtype" in self.names:
            given[self.names["dtype"]] = dtype
        if "device" in self.names:
            given[self.names["device"]] = torch.device("cpu")
        made = _listed(self.candidate.thing(**given))
        whole = tuple(x for x in made if isinstance(x, Tensor) and x.is_complex())
        return whole if len(whole) == 1 else made  # the numbers themselves, with their parts beside them

    def _make(self, d: int, base: float | None, dtype: torch.dtype) -> Callable[..., Any]:
        key = self.candidate.thing, d, base, dtype
        if key not in _BUILT:
            given = {} if base is None else {self.names["base"]: base}
            made = built(self.candidate, {"width": d, "head_dim": d, "length": LONGEST}, given)
            _BUILT[key] = made.eval() if isinstance(made, nn.Module) else made
        found: Callable[..., Any] = getattr(_BUILT[key], self.method) if self.method else _BUILT[key]
        return found


_BUILT: dict[Any, Any] = {}
_FOUND: dict[Any, Maker | None] = {}


def maker_beside(candidate: Candidate, count: int) -> Maker | None:
    """Return the sibling that makes this many tables of n rows; None where there is none.

    Raises Unfit where one says that it makes them, and no call of it gives such.
    """
    key = candidate.thing, candidate.module, count
    if key not in _FOUND:
        _FOUND[key] = next(_makers(candidate, count), None)
    return _FOUND[key]


def makers_of(candidate: Candidate) -> set[str]:
    """Return the names of the siblings that were found to make the tables of a candidate."""
    makers = (one for key, one in _FOUND.items() if key[:2] == (candidate.thing, candidate.module))
    return {one.candidate.name for one in makers if one is not None}


def _makers(candidate: Candidate, count: int) -> Iterator[Maker]:
    said = ""
    for name, x in candidate.siblings().items():
        own, one = set(words(name)), Candidate(name, over_tensors(x, candidate.module), candidate.module)
        by_name = any(m <= own for m in _MAKERS) or any(word.startswith(_MAY_MAKE) for word in own)
        if not callable(x) or x is candidate.thing or not (by_name or any(m <= own for m in WORDS)):
            continue
        found = next((maker for maker in _ways(one) if _makes(maker, count)), None)
        if found is not None:
            yield found
        elif not isinstance(x, type) and any(m <= own for m in _MAKERS):
            said = said or name
    if said:
        raise Unfit(f"its tables are made by {said!r}, which is called in another way than is known")


def _fits(table: Any, d: int, n: int) -> bool:
    """Return whether it has a row for each of n positions, with an entry, or two, for each entry of d or pair of them.

    A module built from a config of its own makes tables for another width.
    """
    if not isinstance(table, Tensor) or table.ndim < 2 or table.shape[0] != n:
        return False
    return table.numel() in (n * d // 2, n * d, 2 * n * d)


def _is_demanded(one: Candidate, name: str) -> bool:
    return name in one.parameters and one.parameters[name].default is Parameter.empty


def _makes(maker: Maker, count: int) -> bool:
    """Return whether a call gives this many tables of n rows."""
    try:
        made = maker.tables(6, 5, None)
    except Exception:  # it makes something else
        return False
    return len(made) == count and all(_fits(x, 6, 5) for x in made)


_PLACED = {"dtype": ("dtype",), "device": ("device",)}


def _ways(one: Candidate) -> Iterator[Maker]:
    """Yield the calls of a function, or of a module and of its methods, whose parameters are all known."""
    if not one.is_class:
        names = _known(one.parameters, {"d": _WIDTH, "n": _LENGTH}, {"base": BASES, **_PLACED})
        if names:
            yield Maker(one, names)
        return
    size = name_of_size(one, "base")
    base = {"base": size} if size else {}
    own = [name for name in vars(one.thing) if name[:1] != "_" and name != "forward"]
    for method, parameters in (("", one.parameters), *((name, one.parameters_of(name)) for name in own)):
        optional = {"positions": POSITIONS, "n": _LENGTH, "x": INPUT, **_PLACED}
        names = _known(parameters, {}, {**optional, **({"start": STARTS} if method else {})})
        if names and not {"positions", "n", "x"}.isdisjoint(names):
            yield Maker(one, names | base, method)


def _known(parameters: Parameters, needed: Names, optional: Names) -> dict[str, str] | None:
    try:
        return roles(parameters, needed, optional)
    except Unfit:
        return None


def _of_module(
    make: Callable[..., Any], names: Mapping[str, str], d: int, n: int, start: int, dtype: torch.dtype
) -> tuple[Tensor, ...]:
    """Return the tables of a module that is given features, positions or a length, whatever axes it reads."""
    row = start + torch.arange(n)
    rows = (row[None], row) if "positions" in names else (row,)
    shapes = ((1, n, d), (1, 1, n, d), (1, n, 1, d)) if "x" in names else ((n, d),)
    for positions, shape in itertools.product(rows, shapes):
        every: dict[str, Any] = {"positions": positions, "n": n, "x": torch.zeros(shape, dtype=dtype)}
        every |= {"dtype": dtype, "device": torch.device("cpu"), "start": start}
        try:
            made = _listed(make(**{names[role]: value for role, value in every.items() if role in names}))
        except Exception:  # of other axes
            continue
        found = tuple(x.reshape(n, x.shape[-1]) for x in made if isinstance(x, Tensor) and x.numel() == n * x.shape[-1])
        if len(found) == len(made):
            return found
    return ()


def _listed(made: Any) -> tuple[Any, ...]:
    return tuple(made) if isinstance(made, tuple | list) else (made,)
