"""Findings ready to be shown on a page or in Markdown, each with its evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from veriformer.reports.evidence import Evidence, collect_evidence
from veriformer.reports.layout import as_anchor, row_anchor
from veriformer.reports.runs import Run
from veriformer.reports.statuses import STATUS_STYLES, StatusStyle
from veriformer.spec.requirement import Weight
from veriformer.verify.presentation.ranked import grave, weaknesses
from veriformer.verify.presentation.remarks import Remark, advised, lacking, measured, not_seen
from veriformer.verify.results import Result, words
from veriformer.verify.results.finding import Finding
from veriformer.verify.results.foreign import one_line

_TONES = {Weight.WRONG: "bad", Weight.LEAK: "bad", Weight.FRAGILE: "warn"}
_FIRST_FACTS = frozenset({"where", "result", "change", "intended?"})
_MESSAGE = 200
"""Characters of a row's message that are shown beside it."""

SHOWN_OPEN = 5
"""Findings that stand open on a page; the others open at a click."""


@dataclass(frozen=True)
class Explained:
    """A row that a finding explains.

    row: None where results hold no such row. anchor: None where it has its place with a graver finding.
    """

    key: str
    row: Result | None
    anchor: str | None

    @property
    def look(self) -> StatusStyle | None:
        """Return sign, word and colour of its status."""
        return STATUS_STYLES[self.row.status] if self.row else None

    @property
    def message(self) -> str:
        """Return its message on one line."""
        return one_line(self.row.message or "", _MESSAGE) if self.row else ""


@dataclass(frozen=True)
class Entry:
    """A finding of a run, with the rows that it explains. again: how many before it have its id."""

    run: Run
    number: int
    finding: Finding
    rows: tuple[Explained, ...] = ()
    again: int = 0

    @property
    def operation(self) -> str:
        """Return the operation with which it stands; of several, the first."""
        return self.finding.operation.partition(", ")[0]

    @property
    def anchor(self) -> str:
        """Return the name of its place, which stays when the report is written again."""
        name = f"f-{as_anchor(self.run.label)}-{as_anchor(self.finding.id)}"
        return f"{name}-{self.again}" if self.again else name

    @property
    def title(self) -> str:
        """Return the fault and its condition."""
        return words.title(self.finding)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Return label and text of each fact."""
        return list(words.facts(self.finding))

    @property
    def next_steps(self) -> list[tuple[str, str]]:
        """Return the facts that come first: the place, the result, and the change or the claim to make."""
        return [(label, text) for label, text in self.facts if label in _FIRST_FACTS]

    @property
    def meaning(self) -> str:
        """Return the meaning of its weight."""
        return words.MEANING[self.finding.weight]

    @property
    def tone(self) -> str:
        """Return the name of its colour in the style sheet."""
        return _TONES.get(self.finding.weight, "info")

    @property
    def requirement(self) -> str | None:
        """Return the requirement that tells most."""
        return next(iter(self.finding.requirements), None)

    @property
    def evidence(self) -> Evidence:
        """Return its counterexample."""
        return collect_evidence(self.finding.counterexample)


@dataclass(frozen=True)
class Entries:
    """Findings of a run, the gravest first: those that violate, and weaknesses, which practice shares."""

    violating: list[Entry]
    weaknesses: list[Entry]

    @property
    def places(self) -> dict[str, Entry]:
        """Return by row the finding with which its evidence stands."""
        return {row.key: one for one in (*self.violating, *self.weaknesses) for row in one.rows if row.anchor}


def list_findings(run: Run) -> Entries:
    """Return the findings of a run; each row has its place with the gravest that explains it."""
    known = {row.key: row for row in run.results.results}
    placed: set[str] = set()
    ids: Counter[str] = Counter()

    def explained(key: str) -> Explained:
        row = known.get(key)
        anchor = row_anchor(run, row) if row and key not in placed else None
        placed.add(key)
        return Explained(key, row, anchor)

    def entry(number: int, finding: Finding) -> Entry:
        ids[finding.id] += 1
        return Entry(run, number, finding, tuple(map(explained, finding.rows)), ids[finding.id] - 1)

    violating, weak = ([entry(*one) for one in enumerate(found(run.results), 1)] for found in (grave, weaknesses))
    return Entries(violating, weak)


def remarks(run: Run) -> Sequence[tuple[str, list[Remark]]]:
    """Return headings and lines that follow the findings, where there are any."""
    found = (
        ("Advice", list(advised(run.results))),
        ("Not provided", list(lacking(run.results))),
        ("Measured, and judged by", list(measured(run.results))),
        ("Not seen", list(not_seen(run.results))),
    )
    return [(heading, lines) for heading, lines in found if lines]
