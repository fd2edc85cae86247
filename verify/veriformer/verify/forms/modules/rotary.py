"""Rotary embeddings as a class that holds its tables and turns the sequence that it is given."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.construction import built, name_of_size, takes_size
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings, Unfit
from veriformer.verify.forms.holding import Holder, first
from veriformer.verify.forms.interleaving import interleave_rows
from veriformer.verify.forms.meanings import Parameters
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.rotation import (
    LAYOUTS,
    LONGEST,
    POSITIONS,
    RIVALS,
    ROWS,
    STARTS,
    WORDS,
    own_frequencies,
    places,
    spread,
    turn_each,
)
from veriformer.verify.forms.signatures import KEY, QUERY, first_input, roles
from veriformer.verify.forms.stated_shapes import agreeing_layouts, stated_axes
from veriformer.verify.forms.table_places import is_contiguous

GROWS, SHORT = "grows", 3
"""A table that is made longer when a longer sequence comes, and for how many positions such a one is made here."""

KEYS = ("as many as queries", "all from 0 on")
"""Keys that are turned with queries which begin at a position: from there on too, or the cached ones before them."""

_METHODS = ("rotate_queries_or_keys", "forward", "__call__", "rotate", "apply_rotary_emb", "apply_rotary")


def _match(candidate: Candidate) -> Match | None:
    if not candidate.is_class or not any(names <= set(candidate.words) for names in WORDS):
        return None
    if {"attention", "attn", "block", "model", "reverse", "inverse"} & set(candidate.words):
        return None
    method = _method(candidate)
    if method is None and not candidate.is_network:
        return None  # such as its configuration
    if method is None:
        raise Unfit(f"none of its methods is one that turns features: {', '.join(_METHODS)}")
    names = _roles(candidate.parameters_of(method)) or {}
    rows = agreeing_layouts(ROWS, stated_axes(candidate, names["positions"])) if "positions" in names else ROWS[:1]
    x, row = torch.ones(2, 5, 5, 8), torch.arange(5)
    row = row if rows == ROWS else _as_rows(row, rows[0], 2)
    made = built(candidate, _sizes(8))
    try:
        with torch.no_grad():
            out = _turn(candidate, made, method, x, row)
    except Exception as error:
        raise Unfit(f"its {method} raised {type(error).__name__}: {str(error)[:80]}") from error
    if not isinstance(out, Tensor) or out.shape != x.shape:
        return None  # it gives tables, and something else turns by them
    readings = {"layout": LAYOUTS, **({"rows": rows} if "positions" in names else {})}
    if {"q", "start"} <= set(names):
        readings["keys"] = KEYS
    grows = takes_size(candidate, "length") and _grows(candidate, method, x, row)
    return Match(True, {**readings, **({"table": (GROWS,)} if grows else {})})


def _grows(candidate: Candidate, method: str, x: Tensor, row: Tensor) -> bool:
    """Return whether an instance that is made for fewer positions answers all the same."""
    try:
        with torch.no_grad():
            out = _turn(candidate, built(candidate, _sizes(x.shape[-1], SHORT)), method, x, row)
    except Exception:  # refused, for whatever reason
        return False
    return isinstance(out, Tensor) and out.shape == x.shape


def _as_rows(row: Tensor, rows: str, count: int) -> Tensor:
    """Return positions as they are given: one row for all texts, or one of each."""
    return row if rows == ROWS[0] else row.repeat(count, 1)


def _method(candidate: Candidate) -> str | None:
    for name in _METHODS:
        parameters = candidate.parameters_of(name)
        if parameters:
            try:
                return name if _roles(parameters) else None
            except Unfit:
                continue
    return None


def _roles(parameters: Parameters) -> dict[str, str] | None:
    places = {"positions": POSITIONS, "start": STARTS}
    return roles(parameters, {"q": QUERY, "k": KEY}, places) or first_input(parameters, places)


def _turn(candidate: Candidate, made: Any, method: str, x: Tensor, row: Tensor | None, axis: int | None = None) -> Any:
    """Return what it makes of features whose rows stand at positions from 0 on, or at those that it is given.

    axis: that of the positions, where keys are given from position 0 on wherever the queries begin.
    """
    names = _roles(candidate.parameters_of(method)) or {}
    given: dict[str, Any] = {names["positions"]: row} if "positions" in names and row is not None else {}
    if "start" in names:
        given[names["start"]] = int(row[0]) if row is not None and is_contiguous(row) else 0
    call = getattr(made, method)
    if "q" not in names:
        return first(call(x, **given))
    start = given.get(names.get("start", ""), 0)

    def both(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        if axis is None or start == 0:
            turned: tuple[Tensor, Tensor] = call(**{names["q"]: q, names["k"]: k}, **given)
            return turned
        shape = [*k.shape]
        shape[axis] = start
        queries, keys = call(**{names["q"]: q, names["k"]: torch.cat((k.new_zeros(shape), k), axis)}, **given)
        return queries, keys.narrow(axis, start, k.shape[axis])

    return turn_each(both, x)


def _turn_last(candidate: Candidate, made: Any, method: str, x: Tensor, axis: int) -> Tensor | None:
    """Rotate features as queries behind a past: fewer than keys, at the last positions.

    None where the code turns no queries, or says nothing of a past.
    """
    names, n = _roles(candidate.parameters_of(method)) or {}, x.shape[axis]
    if "q" not in names or "positions" in names or n < 2 or not _names_a_past(candidate, method):
        return None
    last = n - n // 2
    queries, _ = getattr(made, method)(**{names["q"]: x.narrow(axis, last, n - last).contiguous(), names["k"]: x})
    others, _ = getattr(made, method)(**{names["q"]: x, names["k"]: x})
    return torch.cat((others.narrow(axis, 0, last), queries), axis)


def _may_leave_out(candidate: Candidate, method: str) -> bool:
    """Return whether a call without positions is one from 0 on."""
    parameters = candidate.parameters_of(method)
    names = _roles(parameters) or {}
    return "positions" in names and parameters[names["positions"]].default is None


def _names_a_past(candidate: Candidate, method: str) -> bool:
    """Return whether the text of a method names a past."""
    try:
        text = inspect.getsource(getattr(candidate.thing, method))
    except (OSError, TypeError):
        return False
    return "past" in text


def _sizes(width: int, length: int = LONGEST) -> dict[str, Any]:
    return {"width": width, "head_dim": width, "heads": 1, "length": length}


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    method = _method(candidate) or "forward"
    names = _roles(candidate.parameters_of(method)) or {}
    base = name_of_size(candidate, "base")

    def call(x: Tensor, positions: Tensor, **given: float) -> Tensor:
        row = places(positions, x.shape[-2])
        given_sizes = {} if base is None else {base: given["base"]}
        sizes = _sizes(x.shape[-1], SHORT if readings.get("table") == GROWS else LONGEST)
        module = _made(candidate, sizes, x.dtype, given_sizes)
        if "positions" in names or ("start" in names and is_contiguous(row)):
            turned, back = spread(x, readings["layout"])
            axes = readings["layout"].strip("[]").split(",")
            given_row = _as_rows(row, readings.get("rows", ROWS[0]), turned.shape[axes.index("B")])
            behind = axes.index("n") if readings.get("keys") == KEYS[1] else None
            result: Tensor = _turn(candidate, module, method, turned, given_row, behind)
            from_the_start = _may_leave_out(candidate, method) and torch.equal(row, torch.arange(len(row)))
            with torch.no_grad():
                others = [_turn(candidate, module, method, turned, None)] if from_the_start else []
            return back(interleave_rows(result, others))
        if len(set(row.tolist())) != row.numel():
            raise NotOffered("positions: each only once, for a sequence has each only once")
        n = int(row.max()) + 1 if row.numel() else 0
        whole = torch.zeros(*x.shape[:-2], n, x.shape[-1], dtype=x.dtype).index_copy(-2, row, x)
        turned, back = spread(whole, readings["layout"])
        result = _turn(candidate, module, method, turned, row)
        with torch.no_grad():
            axis = readings["layout"].strip("[]").split(",").index("n")
            of_last = _turn_last(candidate, module, method, turned, axis)
        return back(result if of_last is None else interleave_rows(result, [of_last])).index_select(-2, row)

    default = candidate.constructor[base].default if base else None
    shown = {"base": default} if isinstance(default, int | float) else {}
    return as_operation("rope", call, ["base"] if base else [], defaults=shown)


def _made(candidate: Candidate, sizes: dict[str, Any], dtype: torch.dtype, given: dict[str, Any]) -> Any:
    if not issubclass(candidate.thing, nn.Module):
        return built(candidate, sizes, given)
    module = Holder.of(candidate).module(sizes, dtype, **given)
    return module if sizes["length"] == LONGEST else copy.deepcopy(module)  # each call finds the table as it was made


FORM = Form(
    name="modules/rotary",
    operation="rope",
    says="a class built from the width that turns a sequence: rotary(x) or rotary(q, k), from 0 on or at positions",
    conventions=("rope.pairing",),
    neutral=("keys",),
    rivals=RIVALS,
    variants=own_frequencies,
    match=_match,
    bind=_bind,
)
