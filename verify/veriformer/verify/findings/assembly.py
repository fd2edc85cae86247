"""From causes to findings: the sentence, the weight, the evidence, and the order in which people read them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from veriformer.spec.requirement import Weight
from veriformer.verify.findings.causes import Cause
from veriformer.verify.findings.diagnosis import Diagnosis
from veriformer.verify.findings.evidence import Example
from veriformer.verify.findings.record import Finding
from veriformer.verify.findings.sentence import sentence, telling
from veriformer.verify.results import Counterexample, Result

_ORDER = list(Weight)


def finding(cause: Cause, diagnosis: Diagnosis | None, results: Sequence[Result]) -> Finding:
    """The finding of a cause that explains these failing rows."""
    example = telling(cause)
    shown = _counterexample(example, results)
    return Finding(
        id=identifier(cause),
        weight=weight(cause, diagnosis),
        operation=cause.condition.operation,
        what=sentence(cause, diagnosis.what if diagnosis else None),
        when=cause.condition.words,
        dtypes=tuple(dict.fromkeys(str(result.dtype) for result in results)),
        requirements=tuple(dict.fromkeys(_telling_first(example, results))),
        rows=tuple(result.key for result in results),
        counterexample=None if shown is None else vars(shown),
        precedents=diagnosis.precedents if diagnosis else (),
        suggestion=_suggestion(results),
        confirmed=cause.confirmed,
        message=example.message,
    )


def identifier(cause: Cause) -> str:
    """The same for the same cause in every run of a target."""
    signature, condition = cause.signature, cause.condition
    about = signature.about if condition.requirement or signature.kind in ("raises", "property") else ""
    text = "|".join((condition.operation, signature.kind, about, *condition.names, condition.requirement or ""))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def weight(cause: Cause, diagnosis: Diagnosis | None = None) -> Weight:
    """What is at stake: no more than the condition says, else the gravest of what is explained; a leak stays one.

    An option whose admitted value is silently taken as another is wrong, however unusual the value.
    """
    weights = [example.weight for example in cause.explained]
    gravest = min(weights, key=_ORDER.index)
    if gravest.advice:
        return gravest
    if cause.condition.weight is Weight.LEAK or 2 * weights.count(Weight.LEAK) > len(weights):
        return Weight.LEAK
    if diagnosis is not None and diagnosis.unheard:
        return Weight.WRONG
    return max(gravest, cause.condition.weight, key=_ORDER.index)


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """By weight, what was borne out first; then what always fails before what fails under a condition, then by rows."""

    def place(one: Finding) -> tuple[int, bool, bool, int]:
        return _ORDER.index(one.weight), not one.confirmed, one.when is not None, -len(one.rows)

    return sorted(findings, key=place)


def _suggestion(results: Sequence[Result]) -> Mapping[str, str] | None:
    """The claim under which most of the rows would hold: one row that a claim settles says little of the others."""
    claims = [tuple(result.suggestion.items()) for result in results if result.suggestion]
    commonest = max(claims, key=claims.count, default=())
    return dict(commonest) if 2 * claims.count(commonest) > len(results) else None


def _telling_first(example: Example, results: Sequence[Result]) -> list[str]:
    slugs = [result.requirement for result in results]
    first = example.row.check.requirement.slug
    return ([first] if first in slugs else []) + slugs


def _counterexample(example: Example, results: Sequence[Result]) -> Counterexample | None:
    """The smallest of the rows, made small as it was; else that of the example as it was drawn."""
    shrunk = [one.counterexample for one in results if one.counterexample and one.counterexample.scalars is not None]
    drawn = [example.shown()] if example.shown else []
    return min([*shrunk, *drawn], key=lambda one: one.scalars or 0, default=None)
