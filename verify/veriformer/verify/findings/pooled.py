"""Rows whose examples are judged together: under which cause they fail, as an experiment tells.

No single example of such a row fails, so that none is evidence in the search for causes. But a wrong result under some
condition spoils a mean over all calls as well, and then the row says nothing of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from veriformer.verify.findings.causes import Cause, wrong_result
from veriformer.verify.findings.condition import Condition
from veriformer.verify.judging.judge import RunStatistics, Violation
from veriformer.verify.judging.row import CheckRun

Gather = Callable[[CheckRun, Sequence[Condition]], tuple[int, RunStatistics]]
"""New examples of a row, those left out that meet a condition: how many there are, and what they come to together."""

_FEWEST = 5
"""Examples from which a row is said to hold."""


def explained_by(row: CheckRun, causes: Sequence[Cause], gather: Gather) -> Cause | None:
    """The cause of wrong results without whose calls the row holds, where it fails with them."""
    candidates = list(_candidates(causes))
    if not candidates or _holds(row, gather, ()) is not False:
        return None
    always = next((cause for cause in candidates if cause.condition.always), None)
    return always or next((cause for cause in candidates if _holds(row, gather, [cause.condition])), None)


def _candidates(causes: Sequence[Cause]) -> Iterator[Cause]:
    """Causes of wrong results that were borne out."""
    for cause in causes:
        if cause.confirmed and wrong_result(cause.signature) and not cause.condition.requirement:
            yield cause


def _holds(row: CheckRun, gather: Gather, without: Sequence[Condition]) -> bool | None:
    """Return whether the row holds without some calls; None where too few examples tell."""
    assert row.check.finish is not None
    examples, together = gather(row, without)
    try:
        row.check.finish(together)
    except Violation:
        return False
    return True if examples >= _FEWEST else None
