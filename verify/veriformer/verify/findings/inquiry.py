"""One operation's failing rows, from survey to findings."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from veriformer.spec.requirement import Kind
from veriformer.verify.catalogue import checks
from veriformer.verify.findings.assembly import finding
from veriformer.verify.findings.causes import Cause, Search, joined
from veriformer.verify.findings.condition import Condition
from veriformer.verify.findings.diagnosis import diagnose
from veriformer.verify.findings.evidence import Example, failing
from veriformer.verify.findings.plain import plain
from veriformer.verify.findings.record import Finding
from veriformer.verify.findings.survey import survey
from veriformer.verify.results import Result, Status
from veriformer.verify.row import Row
from veriformer.verify.target import Target

EXAMPLES = 20
"""Examples of a row that are surveyed, and half as many in an experiment."""

_SECONDS = 1.0
"""Time for one survey."""

_CONTRAST = ("contract", "equation", "gradient")
"""Rows of ordinary calls: where they hold, what fails elsewhere is told from them."""


@dataclass
class Inquiry:
    """The failing rows of one operation on one target.

    results: of the rows that failed. seed: of the run. until: the time, by ``time.perf_counter``, at which to end.
    """

    operation: str
    results: Sequence[Result]
    target: Target
    seed: str
    until: float
    surveys: int = field(default=0, init=False)

    def findings(self) -> list[Finding]:
        """At most one finding for each root cause; rows without evidence are told one by one requirement."""
        surveyed = [result for result in self.results if _surveyable(result)]
        evidence = [example for row in self._rows(surveyed) for example in self._survey(row)]
        search = Search(self.operation, evidence, self._again)
        causes = joined(search.run())
        shared = _shared(causes, surveyed)
        found = [
            finding(cause, diagnose(cause, search.evidence, self.target), results)
            for cause, results in zip(causes, shared, strict=True)
            if results
        ]
        told = {key for one in found for key in one.rows}
        return [*found, *plain(result for result in self.results if result.key not in told)]

    def _rows(self, results: Sequence[Result]) -> Iterator[Row]:
        """The rows to survey: of each requirement in the widest and the narrowest format that failed, and for contrast
        the rows of ordinary calls in the same formats."""
        of = {check.requirement.slug: check for check in checks() if check.operation == self.operation}
        wanted: dict[str, list[str]] = {}
        for result in results:
            wanted.setdefault(result.requirement, []).append(str(result.dtype))
        formats = [name for names in wanted.values() for name in (names[0], names[-1])]
        for name in _CONTRAST:
            slug = f"{self.operation}.{name}"
            if slug in of:
                yield from (Row(of[slug], x, self._device) for x in dict.fromkeys(formats) if x in of[slug].dtypes)
        for slug, names in wanted.items():
            if slug in of and slug.rpartition(".")[2] not in _CONTRAST:
                yield from (Row(of[slug], name, self._device) for name in dict.fromkeys((names[0], names[-1])))

    @property
    def _device(self) -> str:
        return self.results[0].device

    def _survey(self, row: Row) -> list[Example]:
        left = self.until - time.perf_counter()
        if left <= 0:
            return []
        return survey(row, self.target, self.seed, examples=EXAMPLES, seconds=min(left, _SECONDS))

    def _again(self, row: Row, without: Sequence[Condition]) -> list[Example]:
        left = self.until - time.perf_counter()
        if left <= 0:
            return []
        self.surveys += 1
        seed = f"{self.seed}|again {self.surveys}"
        seconds = min(left, _SECONDS / 2)
        return survey(row, self.target, seed, examples=EXAMPLES // 2, seconds=seconds, without=without)


def _surveyable(result: Result) -> bool:
    """Whether a row failed by examples: not by its time, by the end of its process or by refusals."""
    return result.status not in (Status.TIMEOUT, Status.CRASH) and result.kind != Kind.REFUSAL


def _shared(causes: Sequence[Cause], results: Iterable[Result]) -> list[list[Result]]:
    """Every failing row under the cause that explains it; where several do, the one that its own message speaks of."""
    shared: list[list[Result]] = [[] for _ in causes]
    for result in results:
        by_row = [_explained(cause, result) for cause in causes]
        by_requirement = [_explained(cause, result, other_formats=True) for cause in causes]
        counts = by_row if any(by_row) else by_requirement
        if any(counts):
            shared[counts.index(max(counts))].append(result)
    return shared


def _explained(cause: Cause, result: Result, *, other_formats: bool = False) -> float:
    """How many examples of a row a cause explains, those that failed in the words of its result far before others."""
    words = _beginning(result.message)
    examples = [
        one
        for one in failing(cause.explained)
        if one.row.check.requirement.slug == result.requirement and (other_formats or one.row.dtype == result.dtype)
    ]
    return sum(1000.0 if _beginning(one.message) == words else 1.0 for one in examples)


def _beginning(message: str | None) -> str:
    """The first word of a message that names what was judged, or the exception."""
    return str(message).partition("[")[0].partition(":")[0]
