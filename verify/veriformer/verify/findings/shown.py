"""The one call that a finding shows, with what was said of it and by which requirement it was judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from veriformer.spec.requirements import requirement
from veriformer.verify.contract.features import GRADIENTS, present
from veriformer.verify.findings.causes import Cause
from veriformer.verify.findings.condition import Condition
from veriformer.verify.findings.sentence import telling
from veriformer.verify.findings.sharing import first_words
from veriformer.verify.results import Counterexample, Result


@dataclass(frozen=True)
class Shown:
    """Message and counterexample that a finding shows, from one row: a call in one format says nothing of another's
    result.

    meets: whether the call meets the finding's condition.
    """

    message: str
    requirement: str
    counterexample: Counterexample | None = None
    meets: bool = True

    @property
    def size(self) -> int:
        """Number of scalars in its calls."""
        return 0 if self.counterexample is None else self.counterexample.scalars or 0

    @property
    def unusual(self) -> bool:
        """Return whether a call of it is known not to be ordinary."""
        return self.counterexample is not None and self.counterexample.ordinary is False


def shown(cause: Cause, results: Sequence[Result], *, ordinary: bool) -> Shown:
    """Return the smallest call that meets the condition and failed as the telling example did.

    It is that of a row, made small as it was, or an example as it was drawn. What a graver requirement asks is shown
    before what a lesser one does; ordinary calls come before all others where a finding is about them.
    """
    example = telling(cause)
    alike = first_words(example.message)
    return min(
        [*_made_small(cause.condition, results), *_drawn(cause)],
        key=lambda one: (
            ordinary and one.unusual,
            not one.meets,
            first_words(one.message) != alike,
            requirement(one.requirement).weight.advice,
            one.size,
        ),
        default=Shown(example.message, example.row.check.requirement.slug),
    )


def _made_small(condition: Condition, results: Sequence[Result]) -> list[Shown]:
    """Return the counterexamples of rows that were made small."""
    return [
        Shown(str(one.message), one.requirement, one.counterexample, _meets(condition, one, one.counterexample))
        for one in results
        if one.counterexample and one.counterexample.scalars is not None
    ]


def _drawn(cause: Cause) -> list[Shown]:
    """Return the telling example as it was drawn, and the smallest that failed alike under the condition."""
    example = telling(cause)
    alike = [one for one in cause.explained if one.signature == example.signature and one.shown]
    met = [one for one in alike if cause.condition.met(one.calls)]
    smallest = min(met, key=lambda one: one.size, default=None)
    chosen = [one for one in (example, smallest) if one is not None and one.shown]
    return [
        Shown(one.message, one.row.check.requirement.slug, one.shown(), cause.condition.met(one.calls))
        for one in {id(one): one for one in chosen}.values()
        if one.shown
    ]


def _meets(condition: Condition, result: Result, example: Counterexample) -> bool:
    """Return whether the call of a row has the features of a condition, as far as its record tells."""
    if not condition.names:
        return True
    arguments = {name: _value(value) for name, value in example.arguments.items()}
    return condition.met((present(result.operation, arguments, dtype=result.dtype) | {GRADIENTS},))


def _value(recorded: Any) -> Any:
    """Return an argument from its record; strides are not in it."""
    if isinstance(recorded, dict) and {"dtype", "shape", "values"} <= recorded.keys():
        values = torch.tensor(_numbers(recorded["values"]), dtype=getattr(torch, recorded["dtype"]))
        return values.reshape(recorded["shape"])
    return [_value(item) for item in recorded] if isinstance(recorded, list) else recorded


def _numbers(values: Any) -> Any:
    """Return nested lists of numbers in which NaN and infinities are words, as in JSON, as numbers."""
    if isinstance(values, list):
        return [_numbers(value) for value in values]
    return float(values) if isinstance(values, str) else values
