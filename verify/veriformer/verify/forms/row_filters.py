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
from veriformer.verify.forms.score_domains import LOG_PROBS, PROBS, TAKES, as_scores, back, domain_of, told
from veriformer.verify.forms.signatures import LOGITS

SCORES = (*LOGITS, *LOG_PROBS, *PROBS)
"""Usual names of what is filtered."""

ROWS = ("any axes", "[R,V]", "one row", "[V]")
REMOVED = ("-inf", "a large negative number")
_LEAST = -1e4
"""What is left of a removed token is no more than this, which no score comes near."""


def of_rows(form: Form) -> Form:
    """The form of a filter, with readings of what it takes and of what it leaves of tokens that it removes."""

    def match(candidate: Candidate) -> Match | None:
        found = form.match(candidate)
        if found is None:
            return None
        domain = domain_of(candidate, SCORES) or TAKES[0]
        readings = {"takes": (domain,), "rows": _rows(candidate, form.operation), "removed": REMOVED}
        return replace(found, readings={**found.readings, **readings}, told=(*found.told, *told(domain)))

    def bind(candidate: Candidate, readings: Readings) -> Callable[..., Any]:
        filtered = form.bind(candidate, readings)

        def call(logits: Tensor, *arguments: Any, **given: Any) -> Any:
            domain = readings.get("takes", TAKES[0])
            scores = as_scores(logits, domain)
            found = _filtered(filtered, readings, scores, *arguments, **given)
            return back(found, scores, logits, domain) if isinstance(found, Tensor) else found

        call.__signature__ = inspect.signature(filtered)  # type: ignore[attr-defined]
        return call

    return replace(form, match=match, bind=bind, settled=lambda filtered: settle_ties(filtered, form.operation))


_EQUAL, _KEPT = 64, 32
"""So many equal scores, and how many of them are kept: sorting that is not stable orders so many otherwise."""


def settle_ties(filtered: Callable[..., Any], operation: str) -> dict[str, str]:
    """Return the claim of code that keeps as many of equal scores as it must, and not those that come first."""
    logits = torch.zeros(_EQUAL)
    try:
        within = (_KEPT - 0.5) / _EQUAL  # of a nucleus, between what fewer and as many hold
        kept = filtered(logits, within if operation in _FILTERING else _KEPT).isfinite()
    except Exception:  # refused, for whatever reason
        return {}
    others = kept.shape == logits.shape and int(kept.sum()) == _KEPT and not bool(kept[:_KEPT].all())
    return {"choice.ties": "unspecified"} if others else {}


_FILTERING = {"top_p_filter": 0.5}
"""By operation, what its options are that some of three classes are removed; 1 where none is named."""


def _rows(candidate: Candidate, operation: str) -> tuple[str, ...]:
    """Return the readings of rows: one at a time only for code that does not filter two rows together, and without
    leading axes only for code that does not filter one."""
    needed = [name for name, p in candidate.parameters.items() if p.default is p.empty]
    given = dict.fromkeys(needed[1:], _FILTERING.get(operation, 1))

    def filters(x: Tensor) -> bool:
        try:
            found = candidate.thing(x, **given)
        except Exception:  # refused, for whatever reason
            return False
        return isinstance(found, Tensor) and found.shape == x.shape

    alone = () if filters(torch.eye(2)) else ROWS[2:3]
    return (*ROWS[:2], *alone, *(() if filters(torch.arange(3.0)[None]) else ROWS[3:]))


def _filtered(filtered: Callable[..., Any], readings: Readings, logits: Tensor, *arguments: Any, **given: Any) -> Any:
    rows = logits if readings["rows"] == ROWS[0] else logits.reshape(-1, logits.shape[-1])
    if readings["rows"] in ROWS[2:]:
        alone = readings["rows"] == ROWS[3]
        parts = [filtered(row if alone else row[None], *arguments, **given) for row in rows]
        found = torch.stack([part.reshape(rows.shape[1:]) for part in parts]) if parts else rows
    else:
        found = filtered(rows, *arguments, **given)
    if not isinstance(found, Tensor) or found.shape != rows.shape:
        return found
    if readings["removed"] == REMOVED[1]:
        found = torch.where((found < _LEAST) & (found != rows), torch.full_like(found, -torch.inf), found)
    return found.reshape(logits.shape)
