"""Rotary embeddings as ``(q, k, cos, sin)``, ``(x, cos, sin)``, ``(q, k, freqs_cis)`` or ``(x, freqs_cis)``.

The tables are made by a function beside it, or are of the usual kind.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, Readings
from veriformer.verify.forms.holding import first
from veriformer.verify.forms.interleaving import interleave_rows
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.rotation import (
    LAYOUTS,
    PAIRS_OF_TABLES,
    POSITIONS,
    RIVALS,
    SINGLE_TABLES,
    STARTS,
    WORDS,
    own_frequencies,
    places,
    spread,
    takes_angles,
    turn_beside_others,
    turn_each,
    usual_tables,
)
from veriformer.verify.forms.signatures import KEY, QUERY, roles
from veriformer.verify.forms.stated_shapes import agreeing_layouts, stated_axes
from veriformer.verify.forms.table_makers import maker_beside
from veriformer.verify.forms.table_places import (
    OF_BATCH,
    ROWS,
    are_whole,
    place_arguments,
    position_ways,
    turn_beside_other_texts,
)

_X = ("x", "t", "q", "input", "tensor", "xq", "x_", "query", "X")
_COS = ("cos", "freqs_cos", "cos_cached", "cosine", "cos_table")
_SIN = ("sin", "freqs_sin", "sin_cached", "sine", "sin_table")
_CIS = ("freqs_cis", "freqs", "freqs_complex", "rope_cache", "cis", "pos_cis", "freq_complex", "rope")
_OPTIONS = {
    "pairing": ("interleave", "interleaved", "is_interleaved", "use_interleaved", "rotary_interleaved"),
    "positions": POSITIONS,
    "start": STARTS,
}
AXES = ("[n,d]", "[1,n,d]", "[1,1,n,d]", "[1,n,1,d]", "[n,1,1,d]")


def _roles(candidate: Candidate) -> dict[str, str] | None:
    p = candidate.parameters
    angles = tuple(name for name in POSITIONS if name in p and takes_angles(candidate, name))
    options = {**_OPTIONS, "positions": tuple(name for name in POSITIONS if name not in angles)}
    for tensors in ({"q": QUERY, "k": KEY}, {"x": _X}):
        for tables in ({"cos": _COS, "sin": _SIN}, {"cis": (*_CIS, *angles)}):
            if all(any(name in p for name in names) for names in {**tensors, **tables}.values()):
                return roles(p, {**tensors, **tables}, options)
    return None


def _match(candidate: Candidate) -> Match | None:
    if not candidate.is_function or not any(names <= set(candidate.words) for names in WORDS):
        return None
    names = _roles(candidate)
    if names is None:
        return None
    beside = maker_beside(candidate, 2 if "cos" in names else 1)
    layouts = agreeing_layouts(LAYOUTS, stated_axes(candidate, names["x"] if "x" in names else names["q"]))
    readings: dict[str, tuple[str, ...]] = {"layout": layouts, "axes": AXES}
    told = position_ways(candidate, names)
    readings |= {"told": told} if told else {}
    asked = {"rope.pairing": "interleaved"} if "pairing" in names else {}  # in every call, and no convention
    if beside is None:
        readings["table"] = PAIRS_OF_TABLES if "cos" in names else SINGLE_TABLES
        return Match(
            False,
            _answered(candidate, readings),
            ("tables of the usual kind, for nothing beside it makes them",),
            asked,
        )
    return Match(True, _answered(candidate, readings), (beside.told,), asked)


def _answered(candidate: Candidate, readings: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the contract's layout, and the readings by which a call with sizes of its own is answered; all of them
    where none is."""
    x, row = torch.linspace(-1, 1, 2 * 3 * 5 * 8).reshape(2, 3, 5, 8), torch.arange(5)
    kept: list[dict[str, str]] = []
    for values in itertools.product(*readings.values()):
        with contextlib.suppress(Exception), torch.no_grad():  # the axes of another reading
            choice = dict(zip(readings, values, strict=True))
            kept += [choice] if _bind(candidate, choice)(x, row).shape == x.shape else []
    kept += [{"layout": readings["layout"][0]}] if kept else []
    found = {
        name: tuple(v for v in values if any(one.get(name) == v for one in kept)) for name, values in readings.items()
    }
    return found if kept else readings


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    names = _roles(candidate) or {}
    beside = maker_beside(candidate, 2 if "cos" in names else 1)

    def call(x: Tensor, positions: Tensor, *, base: float | None = None, pairing: str = "interleaved") -> Tensor:
        row, way = places(positions, x.shape[-2]), readings.get("told", ROWS)
        n, whole_tables = int(row.max()) + 1 if row.numel() else 1, are_whole(way, row)
        n += whole_tables  # longer than any sequence, as tables usually are
        if beside is None:
            tables = usual_tables(readings["table"], x.shape[-1], n, base)
        else:
            tables = beside.tables(x.shape[-1], n, base, x.dtype)
        theirs: dict[str, Any] = {
            names[role]: _laid(table if whole_tables else table[row], readings["axes"], x.dtype)
            for role, table in zip(("cos", "sin") if "cos" in names else ("cis",), tables, strict=True)
        }
        theirs |= {names["pairing"]: pairing == "interleaved"} if "pairing" in names else {}
        turned, back = spread(x, readings["layout"])
        axis = readings["layout"].strip("[]").split(",").index("B")
        rows = row.expand(turned.shape[axis], -1)

        def turn(turned: Tensor, rows: Tensor = rows) -> Tensor:
            given = theirs | place_arguments(names, way, rows)
            if "x" in names:
                result: Tensor = first(candidate.thing(**{names["x"]: turned}, **given))
                return result
            return turn_each(lambda q, k: candidate.thing(**{names["q"]: q, names["k"]: k}, **given), turned)

        whole, part = turn(turned), turn_beside_others(turn, turned)
        packed = turn_beside_other_texts(turn, turned, rows, axis) if way == OF_BATCH else None
        return back(interleave_rows(whole, [one for one in (part, packed) if one is not None]))

    options = ["base"] if beside is None or "base" in beside.names else []
    return as_operation("rope", call, [*options, *(["pairing"] if "pairing" in names else [])])


def _laid(table: Tensor, axes: str, dtype: torch.dtype) -> Tensor:
    """Return a table with the axes that the code reads, in the dtype of the features where it is real."""
    table = table if table.is_complex() else table.to(dtype)
    table = table.to(torch.complex64) if table.dtype == torch.complex128 and dtype != torch.float64 else table
    shape = {"[n,d]": (), "[1,n,d]": (0,), "[1,1,n,d]": (0, 0), "[1,n,1,d]": (0, 2), "[n,1,1,d]": (1, 1)}[axes]
    for axis in shape:
        table = table.unsqueeze(axis)
    return table


FORM = Form(
    name="functions/rotary_tables",
    operation="rope",
    says="(q, k, cos, sin), (x, cos, sin), (q, k, freqs_cis) or (x, freqs_cis), with tables made beside it",
    conventions=("rope.pairing",),
    neutral=("axes", "table", "told"),
    rivals=RIVALS,
    variants=own_frequencies,
    match=_match,
    bind=_bind,
)
