"""Changes between two sets of runs, of findings and of rows, as JSON, Markdown, a page and lines of a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TextIO

from rich.console import Console

from veriformer.reports.environment import environment
from veriformer.reports.statuses import SHOWN, STATUS_STYLES
from veriformer.reports.summary import text
from veriformer.spec.requirement import Weight
from veriformer.verify.presentation.ranked import by_weight
from veriformer.verify.presentation.verdict import headline
from veriformer.verify.results import VIOLATIONS, Result, Results, Status, Verdict, json_safe, json_text
from veriformer.verify.results.finding import Finding
from veriformer.verify.results.foreign import clean
from veriformer.verify.results.words import title

Pair = tuple[str, Results | None, Results | None]
"""The name of the target, and its old and its new run, either of which there may not be."""


class FindingSort(IntEnum):
    """Kind of change of a finding, in the order in which it is told."""

    NEW = 0
    CHANGED = 1
    GONE = 2


@dataclass(frozen=True)
class FindingChange:
    """A finding that is not what it was; ``old`` or ``new`` is None where there is none of that id."""

    target: str
    old: Finding | None
    new: Finding | None
    before: Callable[[Weight], bool]
    after: Callable[[Weight], bool]

    @property
    def sort(self) -> FindingSort:
        """Return the kind of the change."""
        if self.old is None:
            return FindingSort.NEW
        return FindingSort.GONE if self.new is None else FindingSort.CHANGED

    @property
    def worse(self) -> bool:
        """Return whether the new run is violated by it and the old one was not."""
        return _violates(self.new, self.after) and not _violates(self.old, self.before)

    def __str__(self) -> str:
        last = self.new or self.old
        words = " → ".join(dict.fromkeys(finding.weight.value for finding in (self.old, self.new) if finding))
        return f"{self.target}  {words}: {title(last) if last else ''}"


def finding_changes(old: Sequence[Results], new: Sequence[Results]) -> list[FindingChange]:
    """Return every finding that came, went or changed its weight, by id; new ones first, and among them the gravest."""
    found = [change for pair in pairs(old, new) for change in _of_pair(pair)]
    return sorted(found, key=lambda change: change.sort)


def incomparable(old: Sequence[Results], new: Sequence[Results]) -> list[str]:
    """Return the targets of which one side was written before there were findings: their rows alone are compared."""
    return [target for target, before, after in pairs(old, new) if _apart(before, after)]


def _of_pair(pair: Pair) -> Iterator[FindingChange]:
    target, before, after = pair
    if _apart(before, after):
        return
    was, found = _by_id(before), _by_id(after)
    for name in dict.fromkeys([*found, *was]):
        weighs = after.weighs if after else _usually
        change = FindingChange(target, was.get(name), found.get(name), before.weighs if before else weighs, weighs)
        if change.old is None or change.new is None or change.old.weight is not change.new.weight:
            yield change


def _apart(one: Results | None, other: Results | None) -> bool:
    found = bool((one and one.findings) or (other and other.findings))
    return found and (_bare(one) or _bare(other))


def _bare(run: Results | None) -> bool:
    """Return whether a run has violated rows and no findings at all, as files of version 1 have."""
    return run is not None and bool(run.violations) and not run.findings


def _by_id(run: Results | None) -> dict[str, Finding]:
    return {finding.id: finding for finding in by_weight(run.findings)} if run else {}


def _violates(finding: Finding | None, weighs: Callable[[Weight], bool]) -> bool:
    return finding is not None and weighs(finding.weight)


def _usually(weight: Weight) -> bool:
    return not weight.advice


def pairs(old: Sequence[Results], new: Sequence[Results]) -> Iterator[Pair]:
    """Yield runs matched by target and device; if each side holds a single run, these two whatever their names."""
    if len(old) == len(new) == 1:
        yield str(new[0].implementation["target"]), old[0], new[0]
        return
    before, after = _by_name(old), _by_name(new)
    for name in dict.fromkeys([*after, *before]):
        yield name[0] if name[1] in (None, "cpu") else f"{name[0]} on {name[1]}", before.get(name), after.get(name)


def _by_name(runs: Sequence[Results]) -> dict[tuple[str, str | None], Results]:
    return {(str(run.implementation["target"]), run.environment["device"]): run for run in runs}


SCHEMA_NAME = "veriformer/diff/1"
NOTHING = "no finding came or went, and no row changed its status"

BAD, GOOD, OTHER = "bad", "good", "other"


class Sort(IntEnum):
    """Kind of change of a row, in the order in which changes are told."""

    NEWLY_FAILING = 0
    LOST = 1
    NEWLY_PASSING = 2
    OTHER = 3


_SECTIONS: tuple[tuple[FindingSort | Sort, str, str], ...] = (
    (FindingSort.NEW, "new findings", BAD),
    (FindingSort.CHANGED, "findings of another weight", OTHER),
    (FindingSort.GONE, "findings that are gone", GOOD),
    (Sort.NEWLY_FAILING, "newly failing", BAD),
    (Sort.LOST, "evidence lost", BAD),
    (Sort.NEWLY_PASSING, "newly passing", GOOD),
    (Sort.OTHER, "other changes", OTHER),
)
"""Heading and tone of each kind of change, in the order in which they are told."""
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
        changes: list[Change | FindingChange] = [*self.findings, *self.rows]
        for sort, heading, tone in _SECTIONS:
            yield Section(heading, tone, [x for x in changes if x.sort is sort])


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


_SILENT = frozenset({Status.NOT_PROVIDED, Status.NOT_APPLICABLE, Status.BLOCKED, Status.VACUOUS, Status.HARNESS_ERROR})
"""Statuses of rows that say nothing about an implementation."""


@dataclass(frozen=True)
class Change:
    """A row that is not what it was; ``old`` or ``new`` is None where there is no such row."""

    target: str
    key: str
    old: Result | None
    new: Result | None

    @property
    def sort(self) -> Sort:
        """Return the kind of the change."""
        was = self.old is not None and self.old.status in VIOLATIONS
        fails = self.new is not None and self.new.status in VIOLATIONS
        if fails and not was:
            return Sort.NEWLY_FAILING
        held = self.old is not None and self.old.status in SHOWN
        if held and (self.new is None or self.new.status in _SILENT):
            return Sort.LOST
        passes = self.new is not None and self.new.status in SHOWN
        return Sort.NEWLY_PASSING if was and passes else Sort.OTHER

    @property
    def worse(self) -> bool:
        """Return whether it fails and did not before, or held and no longer shows anything."""
        return self.sort in (Sort.NEWLY_FAILING, Sort.LOST)

    def __str__(self) -> str:
        return f"{self.target}  {self.key}: {_word(self.old)} → {_word(self.new)}"


def changes(old: Sequence[Results], new: Sequence[Results]) -> list[Change]:
    """Return every row whose status changed, appeared or went, newly failing ones first.

    Runs are matched by target and device; where each side holds a single run, these two are compared whatever they are
    called.
    """
    found = [change for pair in pairs(old, new) for change in _changes(*pair)]
    return sorted(found, key=lambda change: change.sort)  # a stable sort keeps the order of the suite


def without_verdict(runs: Sequence[Results]) -> list[str]:
    """Return a line for each run that is invalid or inconclusive, with its reason."""
    lacking = (run for run in runs if run.verdict in (Verdict.INVALID, Verdict.INCONCLUSIVE))
    return [f"{run.verdict.upper()} {headline(run)}" for run in lacking]


def _changes(target: str, old: Results | None, new: Results | None) -> Iterator[Change]:
    before, after = _by_key(old), _by_key(new)
    for key in dict.fromkeys([*after, *before]):
        change = Change(target, key, before.get(key), after.get(key))
        if _status(change.old) != _status(change.new):
            yield change


def _by_key(run: Results | None) -> dict[str, Result]:
    return {row.key: row for row in run.results} if run else {}


def _status(row: Result | None) -> Status | None:
    return row.status if row else None


def _word(row: Result | None) -> str:
    return STATUS_STYLES[row.status].word if row else "no row"


_STYLES = {BAD: "bold red", GOOD: "green", OTHER: "yellow"}
_LONGEST = 600


def show_changes(found: Difference, out: TextIO) -> None:
    """Print what cannot be relied on, then findings, then rows, the worst first."""
    console = Console(file=out, highlight=False, emoji=False, width=None if out.isatty() else 10_000)
    for caveat in found.caveats:
        _print(console, caveat, "bold magenta")
    for section in found.sections():
        if section.changes:
            _print(console, section.title, _STYLES[section.tone])
        for change in section.changes:
            _print(console, f"  {clean(change)[:_LONGEST]}".replace("\n", " "))
    if not found.findings and not found.rows:
        _print(console, NOTHING)


def _print(console: Console, text: str, style: str | None = None) -> None:
    console.print(text, style=style, markup=False, soft_wrap=True)
