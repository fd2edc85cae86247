"""Violations with their evidence: what was called, what came back, what is true and how far apart the two may be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from veriformer.reports.formatting import exact, short
from veriformer.reports.runs import Run
from veriformer.reports.statuses import STATUS_STYLES, StatusStyle
from veriformer.verify.presentation.evidence import Element as WorstElement
from veriformer.verify.presentation.evidence import elements
from veriformer.verify.results import Counterexample, Result, Status

SHOWN_ELEMENTS = 8
SHOWN_CHARACTERS = 1500


@dataclass(frozen=True)
class Element:
    """One judged number: where it is, what came back, what is true, and how far apart the two may be."""

    place: str
    observed: str
    exact: str
    bound: str
    ratio: float

    @property
    def outside(self) -> bool:
        """Whether it lies outside its bound."""
        return not self.ratio <= 1

    @property
    def ratio_text(self) -> str:
        """|observed − exact| / bound for a reader."""
        return short(self.ratio)


@dataclass(frozen=True)
class Violation:
    """One row that makes a run fail, ready to be shown: elements are the worst numbers, more counts the rest."""

    run: Run
    row: Result
    elements: tuple[Element, ...]
    more: int

    @property
    def look(self) -> StatusStyle:
        """How its status is shown."""
        return STATUS_STYLES[self.row.status]

    @property
    def anchor(self) -> str:
        """The name of its place on the page."""
        return anchor(self.run, self.row)

    @property
    def example(self) -> Counterexample | None:
        """The shrunk counterexample."""
        return self.row.counterexample

    @property
    def arguments(self) -> list[tuple[str, str, str]]:
        """Name, type and values of each argument of the call."""
        return [] if self.example is None else [_argument(*item) for item in self.example.arguments.items()]

    @property
    def plain(self) -> list[tuple[str, str]]:
        """Observed, exact and bound as they stand, where they are no lists of numbers of one shape."""
        example = self.example
        if example is None or self.elements:
            return []
        named = (("observed", example.observed), ("exact", example.exact), ("bound", example.bound))
        return [(name, _clipped(_text(value))) for name, value in named if value is not None]


def errors(runs: Sequence[Run]) -> list[Violation]:
    """The rows in which the suite itself broke."""
    rows = [(run, row) for run in runs for row in run.results.results]
    return [evidence(run, row) for run, row in rows if row.status is Status.HARNESS_ERROR]


def anchor(run: Run, row: Result) -> str:
    """The name of a row's place on the page."""
    return "v-" + word_of(f"{run.label}-{row.key}")


def word_of(text: str) -> str:
    """Return a text as part of an anchor."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in text)


def evidence(run: Run, row: Result) -> Violation:
    """A row with the worst numbers of its counterexample."""
    found = [_element(element) for element in elements(vars(row.counterexample))] if row.counterexample else []
    shown = tuple(found[:SHOWN_ELEMENTS])
    return Violation(run, row, shown, len(found) - len(shown))


def _element(found: WorstElement) -> Element:
    place = f"[{found.place}]" if found.place else ""
    return Element(place, exact(found.observed), exact(found.exact), exact(found.bound), found.ratio)


def _argument(name: str, value: Any) -> tuple[str, str, str]:
    if isinstance(value, dict) and {"dtype", "shape", "values"} <= value.keys():
        return name, f"{value['dtype']} {list(value['shape'])}", _clipped(_text(value["values"]))
    return name, type(value).__name__ if value is not None else "", _clipped(_text(value))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _clipped(text: str) -> str:
    return (
        text
        if len(text) <= SHOWN_CHARACTERS
        else f"{text[:SHOWN_CHARACTERS]} … ({len(text)} characters; whole in results.json)"
    )
