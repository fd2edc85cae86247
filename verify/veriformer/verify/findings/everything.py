"""The findings of a run: every operation's, refusals in one, in the order in which people read them.

Findings of what was measured and not judged are among them; findings that say the same, or show the same call with the
same result, become one.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from veriformer.spec.requirement import Weight
from veriformer.verify.contract import dtypes
from veriformer.verify.findings.assembly import ranked
from veriformer.verify.findings.evidence import first_words
from veriformer.verify.findings.inquiry import Inquiry, is_refusal, plain, refusals
from veriformer.verify.findings.precision import told_once
from veriformer.verify.results import VIOLATIONS, Result, Results, Status
from veriformer.verify.results.domain import Domain
from veriformer.verify.results.finding import Finding, together
from veriformer.verify.targets.target import Target

ByOperation = Mapping[str, Sequence[Result]]
Told = Mapping[str, Sequence[Finding]]

LEAST_S = 4.0
"""Processor seconds that an operation has in any case: one row among many is a finding like others."""

_BY_WEIGHT = list(Weight)


def unmet(results: Sequence[Result]) -> list[Result]:
    """Return the rows that findings must explain: violations and advice."""
    return [result for result in results if result.status in VIOLATIONS | {Status.ADVICE}]


def by_operation(results: Sequence[Result]) -> dict[str, list[Result]]:
    """Group unmet rows, refusals aside, by operation: the gravest first, and of these those with the fewest rows."""
    found: dict[str, list[Result]] = {}
    for result in unmet(results):
        if not is_refusal(result):
            found.setdefault(result.operation, []).append(result)
    return dict(sorted(found.items(), key=lambda item: (_gravest(item[1]), len(item[1]))))


def _gravest(rows: Sequence[Result]) -> int:
    order = [weight.value for weight in Weight]
    return min(order.index(row.weight) if row.weight in order else len(order) for row in rows)


def diagnose_operations(
    rows: ByOperation, target: Target, seed: str, seconds: float, tell: Callable[[str, list[Finding]], None]
) -> None:
    """Diagnose operation after operation, each in its share of the time that is left, and report its findings."""
    until = time.process_time() + seconds
    open_rows = sum(map(len, rows.values()))
    for operation, results in rows.items():
        share = max(LEAST_S, (until - time.process_time()) * len(results) / open_rows)
        open_rows -= len(results)
        tell(operation, Inquiry(operation, results, target, seed, time.process_time() + share).findings())


def gathered(run: Results, found: Told) -> list[Finding]:
    """Return all findings of a run in order; unmet rows of an operation without any are reported by requirement."""
    rows = by_operation(run.results)
    untold = [result for operation, mine in rows.items() if operation not in found for result in mine]
    refused = [result for result in unmet(run.results) if is_refusal(result)]
    measured = [*_changes_of_state(run.global_state), *_imprecise(run.domain)]
    told = merged([*(one for some in found.values() for one in some), *plain(untold)])
    of_rows = told_once(put_together(told))
    return ranked([*of_rows, *measured, *refusals(refused)])


def with_findings(
    results: Sequence[Result], findings: Sequence[Finding], weighs: Callable[[Weight], bool]
) -> list[Result]:
    """Return the rows, each with its finding. weighs: whether a finding of that weight violates."""
    of = {key: finding for finding in findings for key in finding.rows}
    return [_explained(row, of[row.key], weighs) if row.key in of else row for row in results]


def _explained(result: Result, finding: Finding, weighs: Callable[[Weight], bool]) -> Result:
    """Return the row with its finding, whose weight decides between failure and advice.

    A row that was taken for a refusal fails after all where a finding of violating weight explains it; a failed row is
    advice where its finding is advice, as where a witness behaves alike.
    """
    lesser = result.weight is None or Weight(result.weight).advice
    status = result.status
    if status is Status.ADVICE and weighs(finding.weight) and not lesser:
        status = Status.FAIL
    elif status is Status.FAIL and finding.weight.advice and not weighs(finding.weight):
        status = Status.ADVICE
    return replace(result, finding=finding.id, status=status)


def _imprecise(domain: Mapping[str, Domain]) -> Iterator[Finding]:
    """Yield a finding for each format coarser than its input in which an operation computes."""
    for operation, known in domain.items():
        for computed in dict.fromkeys(known.precision.values()):
            given = tuple(name for name, coarser in known.precision.items() if coarser == computed)
            what = f"computed in {_full_name(computed)} for {' and '.join(map(_full_name, given))} input"
            yield _measured(operation, what, "compute in the format of the input", Weight.IMPRECISE, given)


def _changes_of_state(global_state: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    """Yield a finding for each operation, or for the loading of the target, that changes the process's global state."""
    for operation, changed in global_state.items():
        if changed:
            what = f"changes global state: {', '.join(changed)}"
            yield _measured(operation, what, "leave it as it was found, or put it back before returning", Weight.WRONG)


def _full_name(dtype: str) -> str:
    return str(dtypes.TORCH[dtype]).removeprefix("torch.")


def _measured(operation: str, what: str, fix: str, weight: Weight, given: tuple[str, ...] = ()) -> Finding:
    identifier = hashlib.sha256(f"{operation}|{what}".encode()).hexdigest()[:8]
    told = f"{operation}: {what}"
    return Finding(id=identifier, weight=weight, operation=operation, what=told, dtypes=given, confirmed=True, fix=fix)


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings, each that says or shows of its operation what a graver or earlier one does under that."""
    groups: list[list[Finding]] = []
    for one in sorted(findings, key=lambda one: _BY_WEIGHT.index(one.weight)):
        group = next((group for group in groups if _of_one_fault(group[0], one)), None)
        groups.append([one]) if group is None else group.append(one)
    return [_first_of(group) for group in groups]


def _of_one_fault(one: Finding, other: Finding) -> bool:
    if one.operation != other.operation or one.weight.advice != other.weight.advice:
        return False
    return one.what == other.what or _shows_one_call(one, other)


def _shows_one_call(one: Finding, other: Finding) -> bool:
    a, b = one.counterexample, other.counterexample
    if not a or not b or not a["arguments"] or first_words(one.message) != first_words(other.message):
        return False
    return all(repr(a.get(key)) == repr(b.get(key)) for key in ("arguments", "observed", "exact"))


def _first_of(group: Sequence[Finding]) -> Finding:
    first, *others = group
    if not others:
        return first
    said = len({one.when for one in group}) == 1 or (first.when is not None and first.when in first.what)
    return replace(first, when=first.when if said else None, **together(group))


def put_together(findings: Iterable[Finding]) -> list[Finding]:
    """Merge findings that follow from another operation into the gravest finding of that operation, if it has any."""
    listed = list(findings)
    of: dict[str, Finding] = {}
    for one in sorted((one for one in listed if not one.follows), key=lambda one: _BY_WEIGHT.index(one.weight)):
        of.setdefault(one.operation, one)
    kept = [one for one in listed if one.follows not in of]
    due = {id(one): [other for other in listed if other.follows and of.get(other.follows) is one] for one in kept}
    return [replace(one, **together([one, *due[id(one)]], _EXPLAINED)) if due[id(one)] else one for one in kept]


_EXPLAINED = ("dtypes", "requirements", "rows")
"""Lists of a finding that say what it explains."""
