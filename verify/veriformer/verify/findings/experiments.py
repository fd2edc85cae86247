"""Experiments on rows that fail: without some calls, under another claim, on copies of the arguments.

No single example of a row whose examples are judged together fails, so that none is evidence in the search for causes.
But a wrong result under some condition spoils a mean over all calls as well, and then the row says nothing of its own.

Rows that fail by the choice among equal scores alone hold under the claim that ties are broken otherwise. No condition
on the arguments need be found, which could not see the scores of experts, and would have to know how long rows are
before a sort is no longer stable.

Failures that vanish on copies of the arguments are due to a target that modifies them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from veriformer.spec.requirement import Weight
from veriformer.verify.findings.causes import Cause, wrong_result
from veriformer.verify.findings.condition import Condition
from veriformer.verify.findings.sentence import STABLE
from veriformer.verify.judging.judge import RunStatistics, Violation
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import Result
from veriformer.verify.results.finding import Finding, likewise

Gather = Callable[[CheckRun, Sequence[Condition]], tuple[int, RunStatistics]]
"""New examples of a row, those left out that meet a condition: how many there are, and what they come to together."""

_FEWEST = 5
"""Examples from which a row is said to hold."""

CONVENTION = "choice.ties"

_WITNESS_OF_TIES = "torch.topk"
"""Function of PyTorch that promises no order among equal entries; neither does ``torch.sort`` unless asked to be
stable."""

_SAID_OF_TIES = "of equal scores others are chosen than those that come first"

MODIFIED = "was modified"
"""End of the message of a violation about a modified argument."""


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


def by_ties(results: Sequence[Result], every: Sequence[Result]) -> tuple[list[Result], list[Result]]:
    """Of some rows those that a claim about ties settles, and the others.

    every: all that failed. Where the claim settles some of them, the row that asks for the order of equal scores, and
    is not asked under it, is no other matter.
    """
    claimed = any(map(_settled_by_ties, every))
    settled = [row for row in results if _settled_by_ties(row) or (claimed and row.requirement.endswith(".ties"))]
    return settled, [row for row in results if row not in settled]


def _settled_by_ties(row: Result) -> bool:
    return row.suggestion is not None and row.suggestion["convention"] == CONVENTION


def of_rows(cause: Cause, results: Sequence[Result]) -> Cause:
    """The cause of these rows alone."""
    keys = {row.key for row in results}
    mine = tuple(example for example in cause.explained if example.row.key in keys)
    return replace(cause, explained=mine or cause.explained)


def of_ties(found: Finding) -> Finding:
    """Return the finding of such rows: of degenerate input, borne out, and no other than what PyTorch's own does."""
    weight = found.weight if found.weight.advice else Weight.WEAKNESS
    return replace(
        found,
        id=f"{found.operation}-ties",
        weight=weight,
        what=f"{found.operation}: {_SAID_OF_TIES}{likewise(_WITNESS_OF_TIES)}",
        when="with ties",
        confirmed=True,
        fix=STABLE,
        witness=_WITNESS_OF_TIES,
    )


class OnCopies:
    """An implementation each of whose operations gets a clone of every tensor, on the same graph."""

    def __init__(self, implementation: object) -> None:
        self._implementation = implementation

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._implementation, name)
        return _on_copies(found) if callable(found) else found


def _on_copies(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*positional: Any, **options: Any) -> Any:
        return function(*map(_copy, positional), **{name: _copy(value) for name, value in options.items()})

    return call


def _copy(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, list | tuple):
        return type(value)(_copy(item) for item in value)
    return value
