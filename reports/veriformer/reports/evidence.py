"""Counterexamples as a page shows them, numbers as a reader wants them, and rows in which the suite itself broke."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from veriformer.reports.runs import Run
from veriformer.verify.results import Result, Status
from veriformer.verify.results.evidence import Element as WorstElement
from veriformer.verify.results.evidence import elements, is_tensor


def short(value: float | None) -> str:
    """Return two significant digits, without trailing noise."""
    if value is None:
        return "–"
    return f"{value:.2g}" if value == value and abs(value) < 1000 else f"{value:.3g}"


def exact(value: Any) -> str:
    """Return a number as it was recorded: the shortest text that reads back the same."""
    return value if isinstance(value, str) else repr(value)


SHOWN_ELEMENTS = 8
SHOWN_CHARACTERS = 1500


@dataclass(frozen=True)
class Element:
    """A judged number: its place, the observed and the exact value, and the bound on their distance."""

    place: str
    observed: str
    exact: str
    bound: str
    ratio: float

    @property
    def outside(self) -> bool:
        """Return whether it lies outside its bound."""
        return not self.ratio <= 1

    @property
    def ratio_text(self) -> str:
        """Return |observed − exact| / bound for a reader."""
        return short(self.ratio)


@dataclass(frozen=True)
class Evidence:
    """A counterexample, as results hold it, with its worst elements. more: how many others there are."""

    example: Mapping[str, Any]
    elements: tuple[Element, ...]
    more: int

    @property
    def arguments(self) -> list[tuple[str, str, str]]:
        """Return name, type and values of each argument of the call."""
        return [_argument(*item) for item in (self.example.get("arguments") or {}).items()]

    @property
    def plain(self) -> list[tuple[str, str]]:
        """Return observed, exact and bound as they stand, where they are no lists of numbers of one shape."""
        if self.elements:
            return []
        named = ((name, self.example.get(name)) for name in ("observed", "exact", "bound"))
        return [(name, _clipped(_text(value))) for name, value in named if value is not None]

    @property
    def script(self) -> str | None:
        """Return the script that reproduces it."""
        return self.example.get("script")


def collect_evidence(example: Mapping[str, Any] | None) -> Evidence:
    """Return a counterexample with its worst elements; without one, evidence that is empty."""
    found = [_element(element) for element in elements(example or {})]
    shown = tuple(found[:SHOWN_ELEMENTS])
    return Evidence(example or {}, shown, len(found) - len(shown))


def _element(found: WorstElement) -> Element:
    place = f"[{found.place}]" if found.place else ""
    return Element(place, exact(found.observed), exact(found.exact), exact(found.bound), found.ratio)


def _argument(name: str, value: Any) -> tuple[str, str, str]:
    if is_tensor(value):
        return name, f"{value['dtype']} {list(value['shape'])}", _clipped(_text(value["values"]))
    return name, type(value).__name__ if value is not None else "", _clipped(_text(value))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _clipped(text: str) -> str:
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]} … ({len(text)} characters; whole in results.json)"


def row_evidence(row: Result) -> Evidence:
    """Return the call at which a row broke."""
    return collect_evidence(vars(row.counterexample) if row.counterexample else None)


def suite_errors(runs: Sequence[Run]) -> list[tuple[Run, Result]]:
    """Return the rows in which the suite broke, each with its run."""
    return [(run, row) for run in runs for row in run.results.results if row.status is Status.HARNESS_ERROR]
