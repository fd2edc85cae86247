"""Softmax as a function, and the names of what functions of scores take."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Readings
from veriformer.verify.forms.named import VARIANTS, Known, form_of, words_of
from veriformer.verify.forms.offering import as_operation

Z = {"z": ("z", "x", "input", "inputs", "logits", "scores", "a", "tensor", "X")}
DIM = {"dim": ("dim", "axis")}
_TEMPERATURE = {"temperature": ("temperature", "temp", "tau", "T")}

ROWS = ("any axes", "[R,V]")
"""Axes of scores: any before the last, or those of a matrix alone."""


def rows_of(candidate: Candidate) -> Mapping[str, tuple[str, ...]]:
    """Return the readings of axes: a matrix alone only for code that has no argument for the axis, answers a matrix and
    raises for a vector, as what names its second axis does; and that of a temperature, where the code has one."""
    names = candidate.parameters.keys()
    heated = {"temperature": ("1 and 2",)} if set(_TEMPERATURE["temperature"]) & names else {}
    if not candidate.is_function or set(DIM["dim"]) & names:
        return heated
    return (
        {**heated, "rows": ROWS}
        if _answers(candidate, torch.eye(2)) and not _answers(candidate, torch.ones(2))
        else heated
    )


def _answers(candidate: Candidate, x: Tensor) -> bool:
    try:
        found = candidate.thing(x)
    except Exception:  # refused, for whatever reason
        return False
    return isinstance(found, Tensor) and found.shape == x.shape


def as_matrix(z: Tensor, readings: Readings) -> Tensor:
    """Return scores as the rows of one matrix where only such are taken."""
    return z.reshape(-1, z.shape[-1]) if readings.get("rows") == ROWS[1] else z


def _rowwise(given: dict[str, Any], readings: Readings) -> dict[str, Any]:
    """Return the scores as they are taken; of an odd number of them twice, at a temperature of two."""
    z = given.get("z")
    if not isinstance(z, Tensor):
        return given
    rows = {**given, "z": as_matrix(z, readings), "temperature": 1.0}
    odd = "temperature" in readings and z.numel() % 2 == 1
    return next(_hotter(rows, ("temperature",)), rows) if odd else rows


def _hotter(given: Mapping[str, Any], names: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the same call at twice the temperature, where twice the scores are exact."""
    z, temperature = given["z"], given["temperature"]
    if "temperature" in names and torch.equal(2 * z / 2, z):
        yield {**given, "z": 2 * z, "temperature": 2 * temperature}


SOFTMAX = Known(
    "softmax",
    words_of("softmax"),
    Z,
    DIM,
    frozenset(("log", "gumbel", "cross", "masked")) | VARIANTS,
    arrange=_rowwise,
    alike=_hotter,
    filled=_TEMPERATURE,
    own=rows_of,
    neutral=("temperature",),
)

_BY_NAME = form_of("functions/softmax", SOFTMAX)


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Any]:
    function = _BY_NAME.bind(candidate, readings)
    if readings.get("rows") != ROWS[1]:
        return function

    def call(z: Tensor) -> Any:
        found = function(z)
        return found.reshape(z.shape) if isinstance(found, Tensor) and found.numel() == z.numel() else found

    return as_operation("softmax", call)


FORM = replace(_BY_NAME, bind=_bind)
