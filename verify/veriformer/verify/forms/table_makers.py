"""Makers of rotary tables that stand beside what turns by them: functions of width and length, and modules."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.construction import built, name_of_size
from veriformer.verify.forms.form import Unfit
from veriformer.verify.forms.frameworks import over_tensors
from veriformer.verify.forms.rotation import BASE, BASES, LONGEST, POSITIONS, WORDS
from veriformer.verify.forms.signatures import INPUT, roles

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
    """A function of width and length, or a module built from the width. names: its parameters by role."""

    candidate: Candidate
    names: Mapping[str, str]

    def tables(self, d: int, n: int, base: float | None, dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
        """Return the tables for so many positions, in the dtype of the features where that is asked for."""
        if self.candidate.is_class:
            return _of_module(self._module(d, base, dtype), self.names, d, n, dtype)
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

    def _module(self, d: int, base: float | None, dtype: torch.dtype) -> Any:
        key = self.candidate.thing, d, base, dtype
        if key not in _BUILT:
            given = {} if base is None else {self.names["base"]: base}
            made = built(self.candidate, {"width": d, "head_dim": d, "length": LONGEST}, given)
            _BUILT[key] = made.eval() if isinstance(made, nn.Module) else made
        return _BUILT[key]


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
        try:
            names = _roles(one)
            made = Maker(one, names).tables(6, 5, None) if names is not None else ()
        except Exception:  # it makes something else
            made = ()
        if len(made) == count and all(_fits(x, 6, 5) for x in made):
            yield Maker(one, names or {})
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


def _roles(one: Candidate) -> dict[str, str] | None:
    if not one.is_class:
        extra = {"base": BASES, "dtype": ("dtype",), "device": ("device",)}
        return roles(one.parameters, {"d": _WIDTH, "n": _LENGTH}, extra)
    base = name_of_size(one, "base")
    found = roles(one.parameters, {}, {"positions": POSITIONS, "n": _LENGTH, "x": INPUT})
    return None if not found else found | ({"base": base} if base else {})


def _of_module(module: Any, names: Mapping[str, str], d: int, n: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Return the tables of a module that is given features, positions or a length, whatever axes it reads."""
    row = torch.arange(n)
    rows = (row[None], row) if "positions" in names else (row,)
    shapes = ((1, n, d), (1, 1, n, d), (1, n, 1, d)) if "x" in names else ((n, d),)
    for positions, shape in itertools.product(rows, shapes):
        every: dict[str, Any] = {"positions": positions, "n": n, "x": torch.zeros(shape, dtype=dtype)}
        try:
            made = _listed(module(**{names[role]: value for role, value in every.items() if role in names}))
        except Exception:  # of other axes
            continue
        found = tuple(x.reshape(n, x.shape[-1]) for x in made if isinstance(x, Tensor) and x.numel() == n * x.shape[-1])
        if len(found) == len(made):
            return found
    return ()


def _listed(made: Any) -> tuple[Any, ...]:
    return tuple(made) if isinstance(made, tuple | list) else (made,)
