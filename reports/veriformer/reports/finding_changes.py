"""Changes between the findings of two runs: new, of another weight, gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from veriformer.reports.pairs import Pair, pairs
from veriformer.spec.requirement import Weight
from veriformer.verify.presentation.ranked import by_weight
from veriformer.verify.results import Results
from veriformer.verify.results.finding import Finding
from veriformer.verify.results.words import title


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
