"""The findings of a run: every operation's, refusals in one, in the order in which people read them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from veriformer.spec.requirement import Weight
from veriformer.verify.findings.assembly import ranked
from veriformer.verify.findings.inquiry import Inquiry
from veriformer.verify.findings.measured import changes, imprecise
from veriformer.verify.findings.merging import merged
from veriformer.verify.findings.overflow import told_once
from veriformer.verify.findings.parts import put_together
from veriformer.verify.findings.plain import is_refusal, plain, refusals
from veriformer.verify.results import VIOLATIONS, Result, Results, Status
from veriformer.verify.results.finding import Finding
from veriformer.verify.targets.target import Target

ByOperation = Mapping[str, Sequence[Result]]
Told = Mapping[str, Sequence[Finding]]


LEAST_S = 4.0
"""Processor seconds that an operation has in any case: one row among many is a finding like others."""


def unmet(results: Sequence[Result]) -> list[Result]:
    """The rows that findings are to explain."""
    return [result for result in results if result.status in VIOLATIONS | {Status.ADVICE}]


def by_operation(results: Sequence[Result]) -> dict[str, list[Result]]:
    """The rows to look into, refusals aside, by operation: the gravest first, and of these those with the fewest."""
    found: dict[str, list[Result]] = {}
    for result in unmet(results):
        if not is_refusal(result):
            found.setdefault(result.operation, []).append(result)
    return dict(sorted(found.items(), key=lambda item: (_gravest(item[1]), len(item[1]))))


def _gravest(rows: Sequence[Result]) -> int:
    """Return the place of the gravest weight among these rows."""
    order = [weight.value for weight in Weight]
    return min(order.index(row.weight) if row.weight in order else len(order) for row in rows)


def inquire(
    rows: ByOperation, target: Target, seed: str, seconds: float, tell: Callable[[str, list[Finding]], None]
) -> None:
    """Look into operation after operation, each in its share of the time that is left, and tell what was found."""
    until = time.process_time() + seconds
    open_rows = sum(map(len, rows.values()))
    for operation, results in rows.items():
        share = max(LEAST_S, (until - time.process_time()) * len(results) / open_rows)
        open_rows -= len(results)
        tell(operation, Inquiry(operation, results, target, seed, time.process_time() + share).findings())


def gathered(run: Results, found: Told) -> list[Finding]:
    """All findings of a run in order; rows of an operation that nothing was told of are told by requirement."""
    rows = by_operation(run.results)
    untold = [result for operation, mine in rows.items() if operation not in found for result in mine]
    refused = [result for result in unmet(run.results) if is_refusal(result)]
    measured = [*changes(run.global_state), *imprecise(run.domain)]
    told = merged([*(one for some in found.values() for one in some), *plain(untold)])
    of_rows = told_once(put_together(told))
    return ranked([*of_rows, *measured, *refusals(refused)])


def with_findings(
    results: Sequence[Result], findings: Sequence[Finding], weighs: Callable[[Weight], bool]
) -> list[Result]:
    """The rows, each with the finding that explains it. weighs: whether a finding of that weight violates."""
    of = {key: finding for finding in findings for key in finding.rows}
    return [_explained(row, of[row.key], weighs) if row.key in of else row for row in results]


def _explained(result: Result, finding: Finding, weighs: Callable[[Weight], bool]) -> Result:
    """The row, which fails after all where it was taken for a refusal and is explained by what is none, and is advice
    after all where what explains it is no more: where a witness does likewise.
    """
    lesser = result.weight is None or Weight(result.weight).advice
    status = result.status
    if status is Status.ADVICE and weighs(finding.weight) and not lesser:
        status = Status.FAIL
    elif status is Status.FAIL and finding.weight.advice and not weighs(finding.weight):
        status = Status.ADVICE
    return replace(result, finding=finding.id, status=status)
