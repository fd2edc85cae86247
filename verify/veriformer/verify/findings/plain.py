"""Findings of rows that leave nothing to survey: processes that ended, time that was over, refusals, pooled errors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import requirement
from veriformer.verify.findings.assembly import no_graver
from veriformer.verify.findings.sentence import raises, shortened
from veriformer.verify.findings.signature import RAISED
from veriformer.verify.findings.signature import shortened as normalised
from veriformer.verify.results import Result, Status
from veriformer.verify.results.finding import Finding

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
    """A message without its numbers; of a judgement only what was judged."""
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
