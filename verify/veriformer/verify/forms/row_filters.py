"""Filters of logits that take rows alone, or one row, and that leave a large negative number where -inf is meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, Readings

ROWS = ("any axes", "[R,V]", "one row")
REMOVED = ("-inf", "a large negative number")
_LEAST = -1e4
"""What is left of a removed token is no more than this, which no score comes near."""


def of_rows(form: Form) -> Form:
    """The form of a filter, with readings of what it takes and of what it leaves of tokens that it removes."""

    def match(candidate: Candidate) -> Match | None:
        found = form.match(candidate)
        return found and replace(found, readings={**found.readings, "rows": ROWS, "removed": REMOVED})

    def bind(candidate: Candidate, readings: Readings) -> Callable[..., Any]:
        filtered = form.bind(candidate, readings)

        def call(logits: Tensor, *arguments: Any, **given: Any) -> Any:
            return _filtered(filtered, readings, logits, *arguments, **given)

        call.__signature__ = inspect.signature(filtered)  # type: ignore[attr-defined]
        return call

    return replace(form, match=match, bind=bind)


def _filtered(filtered: Callable[..., Any], readings: Readings, logits: Tensor, *arguments: Any, **given: Any) -> Any:
    rows = logits if readings["rows"] == ROWS[0] else logits.reshape(-1, logits.shape[-1])
    if readings["rows"] == ROWS[2]:
        parts = [filtered(row[None], *arguments, **given) for row in rows]
        found = torch.cat(parts) if parts else rows
    else:
        found = filtered(rows, *arguments, **given)
    if not isinstance(found, Tensor) or found.shape != rows.shape:
        return found
    if readings["removed"] == REMOVED[1]:
        found = torch.where((found < _LEAST) & (found != rows), torch.full_like(found, -torch.inf), found)
    return found.reshape(logits.shape)
