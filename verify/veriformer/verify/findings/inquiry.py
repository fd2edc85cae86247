"""Diagnosis of one operation's failing rows, from survey to findings.

Each row goes under the cause that explains it. Rows that leave nothing to survey (processes that ended, time that was
over, refusals, pooled errors) are told by what they say.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from torch import nn

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import requirement
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.findings.assembly import Known, finding, no_graver
from veriformer.verify.findings.causes import Cause, Search, joined, kind, united
from veriformer.verify.findings.condition import Condition
from veriformer.verify.findings.diagnosis import Diagnosis, diagnose
from veriformer.verify.findings.evidence import RAISED, Example, Failing, first_words
from veriformer.verify.findings.evidence import shortened as normalised
from veriformer.verify.findings.experiments import (
    MODIFIED,
    PARTS,
    OnCopies,
    by_ties,
    explained_by,
    factor,
    of_rows,
    of_ties,
    with_sound_part,
)
from veriformer.verify.findings.precision import COARSER, explain_by_precision, in_float32, lost_in_halves
from veriformer.verify.findings.refused import by_no_rule
from veriformer.verify.findings.sentence import raises, shortened
from veriformer.verify.findings.survey import survey
from veriformer.verify.findings.witness import shared_rows
from veriformer.verify.judging.judge import RunStatistics
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import VIOLATIONS, Result, Status
from veriformer.verify.results.finding import Finding
from veriformer.verify.targets.target import Target

EXAMPLES = 20
"""Examples of a row that are surveyed, and half as many in an experiment."""

_SECONDS = 1.0
"""Time for one survey."""

_LEAST_S = 0.2
"""Time that a violated row's survey has in any case: without an example of it no witness can be asked."""

_CONTRAST = ("contract", "equation", "gradient")
"""Rows of ordinary calls: where they hold, what fails elsewhere is told from them."""


@dataclass
class Inquiry:
    """The failing rows of one operation on one target.

    results: of the rows that failed. seed: of the run. until: when to end, by ``time.process_time``, so that a busy
    machine costs no evidence.
    """

    operation: str
    results: Sequence[Result]
    target: Target
    seed: str
    until: float
    surveys: int = field(default=0, init=False)

    def findings(self) -> list[Finding]:
        """Return at most one finding for each root cause; rows without evidence are reported by requirement."""
        surveyed = [result for result in self.results if _surveyable(result)]
        half = time.process_time() + (self.until - time.process_time()) / 2
        evidence = [example for row in self._rows(surveyed) for example in self._survey(row, half)]
        search = Search(self.operation, evidence, self._again)
        named = self._named(self._unmodified(joined(search.run())), search.evidence)
        causes = [cause for cause, _ in named]
        shared = self._with_pooled(causes, shared_out(causes, surveyed))
        found, tied = [], []
        for (cause, diagnosis), results in zip(named, shared, strict=True):
            settled, rest = by_ties(results, self.results) if diagnosis is None else ([], results)
            tied += [(cause, settled)] if settled else []
            cause = of_rows(cause, rest) if settled and rest else cause
            for part, rows, witness in self._by_witness(self._with_ordinary(cause), rest):
                told_of = self._told(part, diagnosis, rows, search.evidence, witness)
                found.append(replace(told_of, follows=self._follows(part)))
        if tied:
            rows = [row for _, settled in tied for row in settled]
            found.append(of_ties(finding(tied[0][0], Known(), rows)))
        told = {key for one in found for key in one.rows}
        tied_alone, untold = by_ties([result for result in self.results if result.key not in told], self.results)
        return [*found, *map(of_ties, plain(tied_alone)), *plain(untold)]

    def _with_pooled(self, causes: Sequence[Cause], shared: list[list[Result]]) -> list[list[Result]]:
        """Add the rows whose examples are judged together, each under the cause that it fails by."""
        told = {result.key for results in shared for result in results}
        of = {row.key: row for row in self._every_row() if row.check.finish is not None}
        for result in self.results:
            if result.key in of and result.key not in told:
                cause = explained_by(of[result.key], causes, self._gather)
                if cause is not None:
                    next(results for one, results in zip(causes, shared, strict=True) if one is cause).append(result)
        return shared

    def _with_ordinary(self, cause: Cause) -> Cause:
        """Return a cause with ordinary calls that fail, where the survey met none of them and there are some: of these
        alone a finding may say that code is wrong."""
        if any(one.ordinary for one in cause.explained) or cause.signature.kind is Failing.RAISES:
            return cause
        fresh = [one for row in cause.rows[:2] for one in self._survey(row, self.until, only_ordinary=True)]
        alike = [one for one in fresh if one.failed and kind(one) in {kind(own) for own in cause.explained}]
        return replace(cause, explained=(*cause.explained, *alike))

    def _by_witness(
        self, cause: Cause, results: Sequence[Result]
    ) -> Iterator[tuple[Cause, Sequence[Result], str | None]]:
        """Yield the rows in which a witness does likewise, and the others, each with the cause of these rows alone.

        Rows that were not surveyed go with the others, where there are any.
        """
        shared = shared_rows(cause, self.target) if results else {}
        others = [row for row in results if row.key not in shared]
        if shared and {row.key for row in cause.rows} <= shared.keys():
            others = []
        alike = [row for row in results if row not in others]
        if alike:
            names = list(shared.values())
            yield (of_rows(cause, alike) if others else cause), alike, max(names, key=names.count)
        if others:
            yield (of_rows(cause, others) if alike else cause), others, None

    def _told(
        self,
        cause: Cause,
        diagnosis: Diagnosis | None,
        results: Sequence[Result],
        evidence: Sequence[Example],
        witness: str | None = None,
    ) -> Finding:
        coarser = diagnosis is None and in_float32(cause, self.target)
        lost = COARSER if coarser else explain_by_precision(cause, self.target) if diagnosis is None else None
        in_halves = diagnosis is not None and lost_in_halves(cause, self.target)
        unruly = bool(self.target.recognised) and by_no_rule(cause, evidence)
        multiple = factor(cause, self.target) if diagnosis is None and lost is None else None
        return finding(cause, Known(diagnosis, lost, in_halves, multiple, coarser, witness, unruly), results)

    def _unmodified(self, causes: list[Cause]) -> list[Cause]:
        """Return the causes; where a target modifies its arguments, its consequences are merged into that cause.

        These are gradients, whose formula reads overwritten arguments, and failures that vanish once the target gets
        copies.
        """
        first = next((cause for cause in causes if cause.signature.about.endswith(MODIFIED)), None)
        if first is None or isinstance(self.target.implementation, nn.Module):
            return causes
        careful = replace(self.target, implementation=OnCopies(self.target.implementation))
        others = [cause for cause in causes if cause is not first]
        gone = [one for one in others if one.signature.gradients or not self._fails(one, careful)]
        explained = (*first.explained, *(one for cause in gone for one in cause.explained))
        rest = [cause for cause in others if not any(cause is one for one in gone)]
        return [replace(first, explained=explained, source=first.signature), *rest]

    def _follows(self, cause: Cause) -> str | None:
        """Return the called operation whose fault this is: no failure remains over a correct implementation of it."""
        sound = with_sound_part(self.operation, self.target)
        return PARTS[self.operation] if sound is not None and not self._fails(cause, sound) else None

    def _fails(self, cause: Cause, target: Target) -> bool:
        fresh = (survey(row, target, self.seed, examples=EXAMPLES, seconds=_SECONDS) for row in cause.rows[:2])
        return any(example.failed for examples in fresh for example in examples)

    def _named(self, causes: Sequence[Cause], evidence: Sequence[Example]) -> list[tuple[Cause, Diagnosis | None]]:
        """Return every cause with its diagnosis; causes of one known fault, and others that it shows, are merged."""
        named: dict[object, tuple[Cause, Diagnosis | None]] = {}
        for index, cause in enumerate(causes):
            diagnosis = diagnose(cause, evidence, self.target) if time.process_time() < self.until else None
            if diagnosis and diagnosis.condition:
                cause = replace(cause, condition=diagnosis.condition)
            key: object = diagnosis.what if diagnosis else index
            named[key] = (united(named[key][0], cause) if key in named else cause, diagnosis)
        for known, (_, diagnosis) in list(named.items()):
            for other, (cause, unknown) in list(named.items()):
                if diagnosis and diagnosis.faulty and not unknown and self._shows(diagnosis.faulty, cause):
                    named[known] = (united(named[known][0], cause), diagnosis)
                    del named[other]
        return list(named.values())

    def _shows(self, faulty: object, cause: Cause) -> bool:
        """Return whether an implementation with a known fault fails the same rows in the same way."""
        shown = replace(self.target, implementation=faulty)
        for row in cause.rows[:2]:
            again = survey(row, shown, self.seed, examples=EXAMPLES, seconds=_SECONDS)
            if cause.signature not in {example.signature for example in again}:
                return False
        return True

    def _rows(self, results: Sequence[Result]) -> Iterator[CheckRun]:
        """Yield the rows to survey: each requirement in the widest and the narrowest format that failed.

        For contrast the rows of ordinary calls in these formats come first.
        """
        of = {check.requirement.slug: check for check in checks() if check.operation == self.operation}
        wanted: dict[str, list[str]] = {}
        for result in results:
            wanted.setdefault(result.requirement, []).append(str(result.dtype))
        formats = [name for names in wanted.values() for name in (names[0], names[-1])]
        for name in _CONTRAST:
            slug = f"{self.operation}.{name}"
            if slug in of:
                yield from (CheckRun(of[slug], x, self._device) for x in dict.fromkeys(formats) if x in of[slug].dtypes)
        others = {slug: names for slug, names in wanted.items() if slug.rpartition(".")[2] not in _CONTRAST}
        yield from (CheckRun(of[slug], names[0], self._device) for slug, names in others.items())
        yield from (CheckRun(of[slug], names[-1], self._device) for slug, names in others.items() if len(names) > 1)

    def _every_row(self) -> Iterator[CheckRun]:
        of = {check.requirement.slug: check for check in checks() if check.operation == self.operation}
        failed = (result for result in self.results if result.requirement in of)
        yield from (CheckRun(of[result.requirement], str(result.dtype), result.device) for result in failed)

    @property
    def _device(self) -> str:
        return self.results[0].device

    def _survey(self, row: CheckRun, until: float, *, only_ordinary: bool = False) -> list[Example]:
        failed = [one.examples for one in self.results if one.key == row.key and one.status in VIOLATIONS]
        left = max(until - time.process_time(), _LEAST_S if failed and not only_ordinary else 0.0)
        if left <= 0:
            return []
        return survey(
            row,
            self.target,
            self.seed,
            examples=EXAMPLES,
            seconds=min(left, _SECONDS),
            only_ordinary=only_ordinary,
            until_failed=0 if only_ordinary or row.check.finish is not None else max(failed, default=0),
        )

    def _again(self, row: CheckRun, without: Sequence[Condition]) -> list[Example]:
        left = self.until - time.process_time()
        if left <= 0:
            return []
        self.surveys += 1
        seed = f"{self.seed}|again {self.surveys}"
        seconds = min(left, _SECONDS / 2)
        return survey(row, self.target, seed, examples=EXAMPLES // 2, seconds=seconds, without=without)

    def _gather(self, row: CheckRun, without: Sequence[Condition]) -> tuple[int, RunStatistics]:
        together = RunStatistics()
        seconds = min(max(0.0, self.until - time.process_time()), 2 * _SECONDS)
        found = survey(
            row, self.target, self.seed, examples=EXAMPLES, seconds=seconds, without=without, together=together
        )
        return len(found), together


def _surveyable(result: Result) -> bool:
    """Return whether a row failed by examples: not by its time, by the end of its process or by refusals."""
    return result.status not in (Status.TIMEOUT, Status.CRASH) and result.kind != Kind.REFUSAL


Likeness = Callable[[Example, Result], bool]

_LIKENESSES: tuple[Likeness, ...] = (
    lambda one, row: _same(one, row) and one.row.dtype == row.dtype and _alike(one, row),
    lambda one, row: _same(one, row) and one.row.dtype == row.dtype,
    lambda one, row: _same(one, row) and _alike(one, row),
    lambda one, row: _same(one, row),
    lambda one, row: normalised(one.message) == normalised(str(row.message)),
)
"""Criteria of the likeliest cause for a row, the surest first: an example of that very row that failed in the words of
its result, down to any example that failed so."""


def shared_out(causes: Sequence[Cause], results: Iterable[Result]) -> list[list[Result]]:
    """Return for each cause its failing rows; each row belongs to one cause at most."""
    shared: list[list[Result]] = [[] for _ in causes]
    for result in results:
        place = _place(causes, result)
        if place is not None:
            shared[place].append(result)
    return shared


def _place(causes: Sequence[Cause], result: Result) -> int | None:
    for alike in _LIKENESSES:
        counts = [sum(alike(example, result) for example in cause.explained) for cause in causes]
        if any(counts):
            return counts.index(max(counts))
    return None


def _same(example: Example, result: Result) -> bool:
    return example.row.check.requirement.slug == result.requirement


def _alike(example: Example, result: Result) -> bool:
    return first_words(example.message) == first_words(result.message)


_ORDER = list(Weight)


def plain(results: Iterable[Result]) -> list[Finding]:
    """Return a finding for each operation and kind of end, or for each requirement of an operation."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.operation, _what(result)), []).append(result)
    return [_finding(what, rows) for (_, what), rows in groups.items()]


def refusals(results: Sequence[Result]) -> list[Finding]:
    """Return a single finding for all bad input that is accepted, or refused unhelpfully, in all operations."""
    if not results:
        return []
    operations = list(dict.fromkeys(result.operation for result in results))
    first = results[0]
    what = f"{', '.join(operations)}: bad input is accepted, or refused unhelpfully ({shortened(str(first.message))})"
    return [_finding(what, results, operation=", ".join(operations))]


def is_refusal(result: Result) -> bool:
    """Return whether a row is about refusing bad input."""
    return result.kind == Kind.REFUSAL


def _what(result: Result) -> str:
    if result.status is Status.CRASH:
        return f"{result.operation}: ends the process"
    if result.status is Status.TIMEOUT:
        return f"{result.operation}: does not finish in time"
    return f"{result.operation}: {result.bug_class or result.requirement}: {_said(str(result.message))}"


def _said(message: str) -> str:
    """Return a message without its numbers; of a judgement only the quantity judged."""
    quantity = message.partition("[")[0].partition(":")[0]
    if ": observed " in message:
        return f"the {quantity.removeprefix('the ')} is {'NaN' if 'observed nan' in message else 'wrong'}"
    if RAISED.search(message):
        return raises(message)
    if "root mean square error" in message:
        return f"the rounding errors of the {quantity.removeprefix('the ')} are larger than those of the plain formula"
    return normalised(message)


def _weight(results: Sequence[Result]) -> Weight:
    """Return the gravest weight of the requirements; of calls of which none is ordinary, nothing is called wrong."""
    gravest = min((requirement(one.requirement).weight for one in results), key=_ORDER.index)
    examples = [one.counterexample for one in results]
    unusual = all(one is not None and one.ordinary is False for one in examples)
    return max(gravest, Weight.FRAGILE, key=_ORDER.index) if unusual else gravest


def _finding(what: str, results: Sequence[Result], operation: str | None = None) -> Finding:
    first = min(results, key=lambda one: one.counterexample is None)
    return Finding(
        id=hashlib.sha256("|".join(sorted({result.requirement for result in results})).encode()).hexdigest()[:8],
        weight=no_graver(_weight(results), results),
        operation=operation or first.operation,
        what=what,
        dtypes=tuple(dict.fromkeys(str(result.dtype) for result in results)),
        requirements=tuple(dict.fromkeys(result.requirement for result in results)),
        rows=tuple(result.key for result in results),
        counterexample=vars(first.counterexample) if first.counterexample else None,
        suggestion=next((result.suggestion for result in results if result.suggestion), None),
        message=first.message,
    )
