"""Observations of a comparison: every call of the candidate, judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veriformer.verify.comparison.case import Case
from veriformer.verify.comparison.judgement import Difference, Judged, judge
from veriformer.verify.comparison.session import Ran

NUMERIC = ("values", "gradient", "state", "not finite")
"""Differences in numbers."""


@dataclass
class Evidence:
    """Judged call of the candidate. process: ``first``, ``second``, ``alone``, ``smaller``."""

    name: str
    case: Case
    process: str
    judged: Judged

    @property
    def history(self) -> str:
        """Circumstance of the calls before it: ``refilled``, ``replaced``, ``again``, ``call 8``, or empty."""
        return self.name.partition(".")[2]

    def differs(self, *kinds: str) -> list[Difference]:
        """Its differences of these kinds, of any kind where none is named."""
        return [one for one in self.judged.differences if not kinds or one.kind in kinds]


@dataclass
class Observed:
    """Everything that was observed in a comparison.

    references: by case, what is known of the reference's call. after: by failing case, whether it is right where the
    reference ran before in the same process. filled: by failing case, whether it is wrong alone only with memory that
    nobody has written full of NaN. raised: by the candidate where the reference draws random numbers. why: why there is
    no verdict, where there is none.
    """

    reference: str
    candidate: str
    inputs: str | None
    device: str
    folder: Path
    prepared: dict[str, Any] = field(default_factory=dict)
    cases: dict[str, Case] = field(default_factory=dict)
    evidence: list[Evidence] = field(default_factory=list)
    references: dict[str, dict[str, Any]] = field(default_factory=dict)
    seen: list[dict[str, Any]] = field(default_factory=list)
    chances: dict[str, tuple[str, float, float]] = field(default_factory=dict)
    raised: str = ""
    after: dict[str, bool] = field(default_factory=dict)
    filled: dict[str, bool] = field(default_factory=dict)
    similarity: float | None = None
    untried: list[str] = field(default_factory=list)
    why: str = ""
    started: str = ""
    seconds: float = 0.0

    def of(self, process: str) -> list[Evidence]:
        """The calls of one process."""
        return [one for one in self.evidence if one.process == process]

    def numbers(self) -> int:
        """Return the number of scalars that are judged, over all calls."""
        return 3 * sum(int(x.numel()) for ref in self.references.values() for x in ref["spread"].values())


def take(found: Observed, process: str, ran: Ran) -> list[Evidence]:
    """Judge every call of some processes."""
    count, taken = found.numbers(), []
    for name, record in ran.records.items():
        of = name.partition(".")[0]
        if of in found.references:
            taken.append(Evidence(name, found.cases[of], process, judge(found.references[of], record, count)))
            taken[-1].judged.record = record
    found.evidence += taken
    if ran.found:
        found.seen.append({**ran.found, "process": process})
    return taken


def failing(found: Observed, processes: Sequence[str] = ("first", "second")) -> Iterator[Evidence]:
    """Calls that differ in numbers, or raise."""
    for one in found.evidence:
        if one.process in processes and one.differs(*NUMERIC, "raises", "shape", "dtype", "parts"):
            yield one
