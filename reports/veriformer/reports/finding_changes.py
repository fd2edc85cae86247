"""Changes between the findings of two sets of runs, paired by target: new, of another weight, gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from veriformer.spec.requirement import Weight
from veriformer.verify.presentation.ranked import by_weight
from veriformer.verify.results import Results
from veriformer.verify.results.finding import Finding
from veriformer.verify.results.words import title

Pair = tuple[str, Results | None, Results | None]
"""The name of the target, and its old and its new run, either of which there may not be."""


class FindingSort(IntEnum):
    """Kind of change of a finding, in the order in which it is told."""

    NEW = 0
    CHANGED = 1
    GONE = 2


FINDING_HEADINGS = {
    FindingSort.NEW: "new findings",
    FindingSort.CHANGED: "findings of another weight",
    FindingSort.GONE: "findings that are gone",
}


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
    """Every finding that came, went or changed its weight, by id; new ones first, and the gravest first among them."""
    found = [change for pair in pairs(old, new) for change in _changes(pair)]
    return sorted(found, key=lambda change: change.sort)


def incomparable(old: Sequence[Results], new: Sequence[Results]) -> list[str]:
    """The targets of which one side was written before there were findings: their rows alone are compared."""
    return [target for target, before, after in pairs(old, new) if _apart(before, after)]


def _changes(pair: Pair) -> Iterator[FindingChange]:
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
    """Runs are matched by target and device; where each side holds a single run, these two whatever they are called."""
    if len(old) == len(new) == 1:
        yield str(new[0].implementation["target"]), old[0], new[0]
        return
    before, after = _by_name(old), _by_name(new)
    for name in dict.fromkeys([*after, *before]):
        yield name[0] if name[1] in (None, "cpu") else f"{name[0]} on {name[1]}", before.get(name), after.get(name)


def _by_name(runs: Sequence[Results]) -> dict[tuple[str, str | None], Results]:
    return {(str(run.implementation["target"]), run.environment["device"]): run for run in runs}
