"""The difference between two sets of runs: one record, told on a terminal, as JSON, as Markdown and as a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from veriformer.reports.diff import HEADINGS, Change, Sort, changes, without_verdict
from veriformer.reports.environment import environment
from veriformer.reports.finding_changes import (
    FINDING_HEADINGS,
    FindingChange,
    FindingSort,
    finding_changes,
    incomparable,
)
from veriformer.reports.summary import text
from veriformer.verify.results import Result, Results, json_safe, json_text
from veriformer.verify.results.finding import Finding
from veriformer.verify.results.words import title

SCHEMA_NAME = "veriformer/diff/1"
NOTHING = "no finding came or went, and no row changed its status"

BAD, GOOD, OTHER = "bad", "good", "other"
_FINDING_TONES = {FindingSort.NEW: BAD, FindingSort.CHANGED: OTHER, FindingSort.GONE: GOOD}
_TONES = {Sort.NEWLY_FAILING: BAD, Sort.LOST: BAD, Sort.NEWLY_PASSING: GOOD, Sort.OTHER: OTHER}
_HEADLINES = {0: "nothing is worse", 1: "something is worse", 3: "no verdict"}
_LISTED = 50
"""Changes of one kind that Markdown lists: the summary of a job has a limit."""


@dataclass(frozen=True)
class Section:
    """Changes of one kind. tone: bad, good or other."""

    heading: str
    tone: str
    changes: Sequence[Change | FindingChange]

    @property
    def title(self) -> str:
        """Return the heading, and how many changes there are."""
        return f"{self.heading} ({len(self.changes)})"


@dataclass(frozen=True)
class Difference:
    """Changed findings and rows.

    without_verdict: runs that have none, and why. without_findings: targets of which only rows are compared.
    """

    findings: Sequence[FindingChange]
    rows: Sequence[Change]
    without_verdict: Sequence[str]
    without_findings: Sequence[str]

    @property
    def status(self) -> int:
        """Return the exit status: 0 nothing is worse, 1 something is, 3 a run has no verdict."""
        worse = any(change.worse for change in self.findings) or any(change.worse for change in self.rows)
        return 3 if self.without_verdict else int(worse)

    @property
    def headline(self) -> str:
        """Return the outcome in a few words."""
        return _HEADLINES[self.status]

    @property
    def caveats(self) -> list[str]:
        """Return why the changes cannot be relied on, or are not all."""
        return [*self.without_verdict, *self.without_findings]

    def sections(self) -> Iterator[Section]:
        """Give findings, then rows, each by what the change means and the worst first."""
        for kind, heading in FINDING_HEADINGS.items():
            yield Section(heading, _FINDING_TONES[kind], [x for x in self.findings if x.sort is kind])
        for sort, heading in HEADINGS.items():
            yield Section(heading, _TONES[sort], [x for x in self.rows if x.sort is sort])


def compare_runs(before: Sequence[Results], after: Sequence[Results]) -> Difference:
    """Return what changed between two sets of runs."""
    sides = (("old", before), ("new", after))
    bare = incomparable(before, after)
    return Difference(
        findings=finding_changes(before, after),
        rows=changes(before, after),
        without_verdict=[f"{name}: {words}" for name, runs in sides for words in without_verdict(runs)],
        without_findings=[f"{target}: one side has no findings, only rows are compared" for target in bare],
    )


def as_json(found: Difference) -> str:
    """Return the whole difference as a JSON document."""
    document = {
        "schema": SCHEMA_NAME,
        "status": found.status,
        "caveats": found.caveats,
        "findings": [_change(x, _finding) for x in found.findings],
        "rows": [_change(x, _row) | {"row": x.key} for x in found.rows],
    }
    return json_text(json_safe(document))


def _change(change: Any, side: Callable[[Any], Any]) -> dict[str, Any]:
    sort = change.sort.name.lower().replace("_", " ")
    sides = {name: None if one is None else side(one) for name, one in (("old", change.old), ("new", change.new))}
    return {"target": change.target, "change": sort, "worse": change.worse, **sides}


def _finding(finding: Finding) -> Mapping[str, Any]:
    told = {"id": finding.id, "weight": finding.weight.value, "title": title(finding), "where": finding.where}
    return told | {"requirements": list(finding.requirements)}


def _row(row: Result) -> str:
    return row.status.value


def as_markdown(found: Difference) -> str:
    """Return the difference as Markdown, for the summary of a job or a comment."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Difference) -> Iterator[str]:
    yield f"## Veriformer, against the base: {found.headline}"
    if found.caveats:
        yield from ("", *(f"- **{text(caveat)}**" for caveat in found.caveats))
    for section in filter(lambda one: one.changes, found.sections()):
        yield from ("", f"### {section.title.capitalize()}", "")
        yield from (f"- {text(str(change))}" for change in section.changes[:_LISTED])
        if len(section.changes) > _LISTED:
            yield f"- … and {len(section.changes) - _LISTED} more"
    if not (found.findings or found.rows):
        yield from ("", f"{NOTHING.capitalize()}.")


def as_page(found: Difference) -> str:
    """Return the difference as a page that needs nothing else."""
    return environment().get_template("difference.html").render(found=found, nothing=NOTHING)
