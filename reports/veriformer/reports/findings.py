"""Findings ready to be shown on a page or in Markdown, each with its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from veriformer.reports.runs import Run
from veriformer.reports.violations import Violation, anchor, evidence
from veriformer.spec.requirement import Weight
from veriformer.verify.findings.record import Finding
from veriformer.verify.presentation import words
from veriformer.verify.presentation.clean import clean
from veriformer.verify.presentation.ranked import grave, weaknesses
from veriformer.verify.presentation.remarks import Remark, advised, lacking, measured, not_seen
from veriformer.verify.results import VIOLATIONS, Counterexample, Result, Status

_TONES = {Weight.WRONG: "bad", Weight.LEAK: "bad", Weight.FRAGILE: "warn"}


@dataclass(frozen=True)
class Entry:
    """One finding of one run."""

    run: Run
    number: int
    finding: Finding

    @property
    def anchor(self) -> str:
        """The name of its place on the page."""
        return f"f-{''.join(c if c.isascii() and c.isalnum() else '-' for c in self.run.label)}-{self.number}"

    @property
    def title(self) -> str:
        """What is wrong and when."""
        return words.title(self.finding)

    @property
    def meaning(self) -> str:
        """What its weight says."""
        return words.MEANING[self.finding.weight]

    @property
    def tone(self) -> str:
        """The name of its colour in the style sheet."""
        return _TONES.get(self.finding.weight, "info")

    @property
    def outcome(self) -> str:
        """What came back against what is true."""
        return words.outcome(self.finding)

    @property
    def explained(self) -> str:
        """How many rows it explains."""
        return words.explained(self.finding)

    @property
    def claim(self) -> str | None:
        """The line of code under which nothing would be wrong."""
        return words.claim(self.finding.suggestion) if self.finding.suggestion else None

    @property
    def rows(self) -> list[tuple[str, str | None]]:
        """The rows explained, each with its place on the page where it has one."""
        known = {row.key: row for row in self.run.results.results if row.status in VIOLATIONS}
        return [(key, anchor(self.run, known[key]) if key in known else None) for key in self.finding.rows]

    @property
    def evidence(self) -> Violation:
        """Its counterexample, to be shown as that of a row is."""
        return evidence(self.run, _as_row(self.finding))


def entries(run: Run) -> list[Entry]:
    """The findings that the verdict on a run rests on, the gravest first."""
    return [Entry(run, number, finding) for number, finding in enumerate(grave(run.results), 1)]


def remarks(run: Run) -> Sequence[tuple[str, list[Remark]]]:
    """What is told after the findings: heading and lines, where there are any."""
    found = (
        ("Weaknesses", [(one.weight.value, words.title(one)) for one in weaknesses(run.results)]),
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
