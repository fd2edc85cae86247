"""Rows that fail by the choice among equal scores alone: under the claim that ties are broken otherwise they hold.

That is the experiment: no condition on the arguments need be found, which could not see the scores of experts, and
would have to know how long rows are before a sort is no longer stable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from veriformer.spec.requirement import Weight
from veriformer.verify.findings.causes import Cause
from veriformer.verify.findings.remedy import STABLE
from veriformer.verify.results import Result
from veriformer.verify.results.finding import Finding, likewise

CONVENTION = "choice.ties"

_WITNESS = "torch.topk"
"""Function of PyTorch that promises no order among equal entries; neither does ``torch.sort`` unless asked to be
stable."""

_SAID = "of equal scores others are chosen than those that come first"


def by_ties(results: Sequence[Result], every: Sequence[Result]) -> tuple[list[Result], list[Result]]:
    """Of some rows those that a claim about ties settles, and the others.

    every: all that failed. Where the claim settles some of them, the row that asks for the order of equal scores, and
    is not asked under it, is no other matter.
    """
    claimed = any(map(_settled, every))
    settled = [row for row in results if _settled(row) or (claimed and row.requirement.endswith(".ties"))]
    return settled, [row for row in results if row not in settled]


def _settled(row: Result) -> bool:
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
        what=f"{found.operation}: {_SAID}{likewise(_WITNESS)}",
        when="with ties",
        confirmed=True,
        fix=STABLE,
        witness=_WITNESS,
    )
