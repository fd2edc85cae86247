"""Rotary embeddings as functions of features, and of positions or of nothing else: they make their own angles."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.holding import first
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.rotation import (
    BASES,
    LAYOUTS,
    POSITIONS,
    RIVALS,
    ROWS,
    STARTS,
    WORDS,
    own_frequencies,
    places,
    spread,
    takes_angles,
    turn_each,
)
from veriformer.verify.forms.signatures import KEY, QUERY, default_of, roles
from veriformer.verify.forms.stated_shapes import agreeing_layouts, stated_axes
from veriformer.verify.forms.table_places import is_contiguous

_X = ("x", "t", "q", "input", "tensor", "x_", "query", "X", "vec", "embeddings")


def _roles(candidate: Candidate) -> dict[str, str] | None:
    optional = {"positions": POSITIONS, "start": STARTS, "base": BASES}
    for tensors in ({"q": QUERY, "k": KEY}, {"x": _X}):
        found = roles(candidate.parameters, tensors, optional)
        if found is not None:
            return found
    return None


def _match(candidate: Candidate) -> Match | None:
    if not candidate.is_function or not any(names <= set(candidate.words) for names in WORDS):
        return None
    asked = [name for name, p in candidate.parameters.items() if p.default is p.empty]
    known = {*_X, *QUERY, *KEY, *POSITIONS, *STARTS, *BASES}
    names = _roles(candidate) if asked and set(asked) <= known else None  # tables and halves are other forms'
    if names is None or takes_angles(candidate, names.get("positions", "")):
        return None
    layouts = agreeing_layouts(LAYOUTS, stated_axes(candidate, names["x"] if "x" in names else names["q"]))
    named = bool({"rope", "rotary"} & set(candidate.words) and {"positions", "start", "base"} & names.keys())
    return Match(named, {"layout": layouts, **({"rows": ROWS} if "positions" in names else {})})


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    names = _roles(candidate) or {}

    def call(x: Tensor, positions: Tensor, **given: Any) -> Tensor:
        row = places(positions, x.shape[-2])
        told = "positions" in names or ("start" in names and is_contiguous(row))
        if not told and not torch.equal(row, torch.arange(len(row))):
            raise NotOffered("positions: those from 0 on are taken")
        turned, back = spread(x, readings["layout"])
        theirs = {names["base"]: given["base"]} if "base" in given else {}
        theirs |= {names["start"]: int(row[0]) if len(row) else 0} if "start" in names else {}
        if "positions" in names:
            axis = readings["layout"].strip("[]").split(",").index("B")
            theirs[names["positions"]] = row if readings["rows"] == ROWS[0] else row.expand(turned.shape[axis], -1)
        if "x" in names:
            return back(first(candidate.thing(**{names["x"]: turned}, **theirs)))
        return back(turn_each(lambda q, k: candidate.thing(**{names["q"]: q, names["k"]: k}, **theirs), turned))

    default = default_of(candidate.parameters, names.get("base"))
    shown = {"base": default} if isinstance(default, int | float) else {}
    required = ["base"] if "base" in names and default is inspect.Parameter.empty else []
    return as_operation("rope", call, ["base"] if "base" in names else [], required=required, defaults=shown)


FORM = Form(
    name="functions/rotary_positions",
    operation="rope",
    says="rope(x), rope(x, positions) or rope(q, k, positions), with a base of the frequencies or without",
    conventions=("rope.pairing",),
    rivals=RIVALS,
    variants=own_frequencies,
    match=_match,
    bind=_bind,
)
