"""Findings ready to be shown on a page or in Markdown, each with its evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from veriformer.reports.runs import Run
from veriformer.reports.statuses import STATUS_STYLES, StatusStyle
from veriformer.reports.violations import Violation, anchor, evidence, word_of
from veriformer.spec.requirement import Weight
from veriformer.verify.findings.record import Finding
from veriformer.verify.presentation import words
from veriformer.verify.presentation.clean import clean, one_line
from veriformer.verify.presentation.ranked import grave, weaknesses
from veriformer.verify.presentation.remarks import Remark, advised, lacking, measured, not_seen
from veriformer.verify.results import Counterexample, Result, Status

_TONES = {Weight.WRONG: "bad", Weight.LEAK: "bad", Weight.FRAGILE: "warn"}
_MESSAGE = 200
"""Characters of a row's message that are shown beside it."""


SHOWN_OPEN = 5
"""Findings that stand open on a page; the others open at a click."""


@dataclass(frozen=True)
class Explained:
    """One row that a finding explains. row: None where results hold no such row. anchor: None where it has its place
    with a graver finding."""

    key: str
    row: Result | None
    anchor: str | None

    @property
    def look(self) -> StatusStyle | None:
        """How its status is shown."""
        return STATUS_STYLES[self.row.status] if self.row else None

    @property
    def message(self) -> str:
        """What became of it, on one line."""
        return one_line(self.row.message or "", _MESSAGE) if self.row else ""


@dataclass(frozen=True)
class Entry:
    """One finding of one run. rows: those that it explains. again: how many before it have its id."""

    run: Run
    number: int
    finding: Finding
    rows: tuple[Explained, ...] = ()
    again: int = 0

    @property
    def anchor(self) -> str:
        """The name of its place, the same whenever the report is written again."""
        name = f"f-{word_of(self.run.label)}-{word_of(self.finding.id)}"
        return f"{name}-{self.again}" if self.again else name

    @property
    def title(self) -> str:
        """What is wrong and when."""
        return words.title(self.finding)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Label and text of each fact."""
        return list(words.facts(self.finding))

    @property
    def next_steps(self) -> list[tuple[str, str]]:
        """Of these, where it is, what comes out, and what to change or to claim."""
        return [(label, text) for label, text in self.facts if label in ("where", "result", "change", "intended?")]

    @property
    def meaning(self) -> str:
        """What its weight says."""
        return words.MEANING[self.finding.weight]

    @property
    def tone(self) -> str:
        """The name of its colour in the style sheet."""
        return _TONES.get(self.finding.weight, "info")

    @property
    def requirement(self) -> str | None:
        """The requirement that tells most."""
        return next(iter(self.finding.requirements), None)

    @property
    def script(self) -> str | None:
        """The script that shows it."""
        return (self.finding.counterexample or {}).get("script")

    @property
    def evidence(self) -> Violation:
        """Its counterexample, to be shown as that of a row is."""
        return evidence(self.run, _as_row(self.finding))


def entries(run: Run) -> list[Entry]:
    """The findings that the verdict on a run rests on, the gravest first."""
    return _entries(run)[0]


def weak(run: Run) -> list[Entry]:
    """The weaknesses, which practice shares and which violate nothing."""
    return _entries(run)[1]


def _entries(run: Run) -> tuple[list[Entry], list[Entry]]:
    known = {row.key: row for row in run.results.results}
    placed: set[str] = set()
    ids: Counter[str] = Counter()

    def explained(key: str) -> Explained:
        row = known.get(key) if key not in placed else None
        placed.add(key)
        return Explained(key, known.get(key), anchor(run, row) if row else None)

    def entry(number: int, finding: Finding) -> Entry:
        ids[finding.id] += 1
        return Entry(run, number, finding, tuple(map(explained, finding.rows)), ids[finding.id] - 1)

    violating, others = grave(run.results), weaknesses(run.results)
    return [entry(*one) for one in enumerate(violating, 1)], [entry(*one) for one in enumerate(others, 1)]


def places(run: Run) -> dict[str, Entry]:
    """By row the finding with which its evidence stands."""
    return {row.key: entry for entry in (*entries(run), *weak(run)) for row in entry.rows if row.anchor}


def remarks(run: Run) -> Sequence[tuple[str, list[Remark]]]:
    """What is told after the findings: heading and lines, where there are any."""
    found = (
        ("Advice", list(advised(run.results))),
        ("Not provided", list(lacking(run.results))),
        ("Measured, and judged by", list(measured(run.results))),
        ("Not seen", list(not_seen(run.results))),
    )
    return [(heading, lines) for heading, lines in found if lines]


def _as_row(finding: Finding) -> Result:
    return Result(
        requirement=next(iter(finding.requirements), finding.id),
        operation=finding.operation,
        equations=[],
        dtype=next(iter(finding.dtypes), None),
        device="",
        status=Status.FAIL,
        message=clean(finding.message) if finding.message else None,
        counterexample=_example(finding.counterexample) if finding.counterexample else None,
    )


def _example(recorded: Mapping[str, Any]) -> Counterexample:
    fields: dict[str, Any] = {key: recorded.get(key) for key in ("observed", "exact", "bound", "script")}
    return Counterexample(arguments=dict(recorded.get("arguments") or {}), **fields)
