"""Filters of logits that take rows alone, or one row, and that leave a large negative number where -inf is meant."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.score_domains import LOG_PROBS, PROBS, TAKES, as_scores, back, domain_note, domain_of
from veriformer.verify.forms.signatures import LOGITS

SCORES = (*LOGITS, *LOG_PROBS, *PROBS)
"""Usual names of what is filtered."""

ROWS = ("any axes", "[R,V]", "one row", "[V]")
REMOVED = ("-inf", "a large negative number", "False in a mask", "True in a mask")
"""What is left of a removed token; or how a mask says it, which is all that some filters give."""

_LEAST = -1e4
"""Upper bound of the score left of a removed token, which no score comes near."""


def of_rows(form: Form) -> Form:
    """Return the form of a filter, with readings of what it takes and of what it leaves of tokens that it removes."""

    def match(candidate: Candidate) -> Match | None:
        found = form.match(candidate)
        if found is None:
            return None
        domain = domain_of(candidate, SCORES) or TAKES[0]
        readings = {"takes": (domain,), "rows": _rows(candidate, form.operation), "removed": REMOVED}
        return replace(found, readings={**found.readings, **readings}, told=(*found.told, *domain_note(domain)))

    def bind(candidate: Candidate, readings: Readings) -> Callable[..., Any]:
        filtered = form.bind(candidate, readings)
        off_at_zero = functools.cache(lambda: form.operation == "top_p_filter" and _keeps_all(filtered, readings))

        def call(logits: Tensor, *arguments: Any, **given: Any) -> Any:
            if 0 in (*arguments[:1], given.get("p")) and off_at_zero():
                raise NotOffered("p: 0 turns it off")
            domain = readings.get("takes", TAKES[0])
            scores = as_scores(logits, domain)
            found = _filtered(filtered, readings, scores, *arguments, **given)
            return back(found, scores, logits, domain) if isinstance(found, Tensor) else found

        call.__signature__ = inspect.signature(filtered)  # type: ignore[attr-defined]
        return call

    return replace(form, match=match, bind=bind, settled=lambda filtered: settle_ties(filtered, form.operation))


def _keeps_all(filtered: Callable[..., Any], readings: Readings) -> bool:
    """Return whether a nucleus of 0 keeps every token, as in code that filters where p > 0."""
    scores = as_scores(torch.tensor([[0.0, 2.0, 1.0]]), readings.get("takes", TAKES[0]))
    try:
        return bool((_filtered(filtered, readings, scores, 0.0) > _LEAST).all())
    except Exception:  # refused, for whatever reason
        return False


_EQUAL, _KEPT = 64, 32
"""Number of equal scores, and number of them that are kept: unstable sorting reorders so many."""


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


_MOST = 3
"""Arguments beside the logits that a filter is tried with, each of them k or p."""


def _rows(candidate: Candidate, operation: str) -> tuple[str, ...]:
    """Return the readings of rows: one at a time only for code that does not filter two rows together, and without
    leading axes only for code that does not filter one."""
    _, *needed = [name for name, p in candidate.parameters.items() if p.default is p.empty] or [""]
    own = _FILTERING.get(operation, 1)

    def filters(x: Tensor) -> bool:
        every = itertools.product(dict.fromkeys((own, x.shape[-1])), repeat=len(needed[:_MOST]))
        return any(answers(x, dict(zip(needed, values, strict=False))) for values in every)

    def answers(x: Tensor, given: dict[str, Any]) -> bool:
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
    if (found.dtype == torch.bool) != (readings["removed"] in REMOVED[2:]):
        raise NotOffered("logits: a mask is returned" if found.dtype == torch.bool else "logits: no mask is returned")
    if found.dtype == torch.bool:
        found = torch.where(found == (readings["removed"] == REMOVED[2]), rows, torch.full_like(rows, -torch.inf))
    elif readings["removed"] == REMOVED[1]:
        found = torch.where((found < _LEAST) & (found != rows), torch.full_like(found, -torch.inf), found)
    return found.reshape(logits.shape)
