"""From causes to findings: the sentence, the weight, the evidence, and the order in which people read them.

A finding shows one call, with what was said of it and by which requirement it was judged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import REQUIREMENTS, requirement
from veriformer.verify.contract.features import GRADIENTS, present
from veriformer.verify.contract.features.attention import NOTHING_SEEN
from veriformer.verify.findings.causes import Cause
from veriformer.verify.findings.condition import Condition
from veriformer.verify.findings.diagnosis import Diagnosis
from veriformer.verify.findings.evidence import Example, Failing, first_words
from veriformer.verify.findings.precision import WORDS, overflows
from veriformer.verify.findings.sentence import PURE, STEADY, WIDER, describe_remedy, sentence, telling
from veriformer.verify.judging.repetition import comes_and_goes
from veriformer.verify.results import Counterexample, Result, Status
from veriformer.verify.results.finding import Finding
from veriformer.verify.targets.claims import KNOWN_CONVENTIONS

_ORDER = list(Weight)
_OF_ORDINARY_CALLS = (Weight.WRONG, Weight.LEAK)
_ORDINARY = (".contract", ".equation")
"""Requirements that rows of ordinary calls are judged by."""

_FULLER = "compute in float64 where the input is float64"

_CONTRACT = {name: place for place, name in enumerate(dict.fromkeys(one.operation for one in REQUIREMENTS))}


@dataclass(frozen=True)
class Known:
    """Facts about a cause besides its condition.

    diagnosis: the known fault that it is. lost: its name where the calls are right in a wider format; in_halves:
    whether the calls of a known fault are. factor: the wrong factor of the result, in words. in_float32: whether
    float32 explains the loss in float64. witness: the practice that does likewise. by_no_rule: whether it is an
    exception for some calls that no rule tells from others, which is a fault of code however it was called.
    """

    diagnosis: Diagnosis | None = None
    lost: str | None = None
    in_halves: bool = False
    factor: str | None = None
    in_float32: bool = False
    witness: str | None = None
    by_no_rule: bool = False

    def said(self, cause: Cause, results: Sequence[Result]) -> str | None:
        """Return the fault in the rows that the cause explains, in words; None where only the evidence shows it.

        NaN or infinity tells more than the name of the convention by which it would be right.
        """
        if comes_and_goes([str(result.message) for result in results]):
            return "gives another result when the same call is made again"
        convention = None if cause.signature.kind is Failing.NOT_FINITE else _convention(_suggestion(results))
        return self.diagnosis.what if self.diagnosis else convention or self.lost

    def weight(self, cause: Cause, results: Sequence[Result]) -> Weight:
        """Return the severity in these rows."""
        found = weight(cause, self.diagnosis, lost=self.lost is not None or self.in_halves)
        if self.in_float32:
            found = max(found, Weight.IMPRECISE, key=_ORDER.index)
        if self.witness is not None:
            found = max(found, Weight.WEAKNESS, key=_ORDER.index)
        return found if self.by_no_rule else no_graver(found, results)

    def fix(self, cause: Cause, results: Sequence[Result], message: str | None, slug: str) -> str | None:
        """Return what to change, in one sentence; None where no experiment confirms the cause: neither its condition,
        nor a fault that gives the same numbers."""
        if not cause.confirmed and self.diagnosis is None:
            return None
        if comes_and_goes([str(result.message) for result in results]):
            return PURE
        suggestion = None if cause.signature.kind is Failing.NOT_FINITE else _suggestion(results)
        if self.diagnosis is None and suggestion is not None and "convention" in suggestion:
            name = suggestion["convention"]
            return f"follow the contract, {name} = {KNOWN_CONVENTIONS[name][0]}, or claim {suggestion['value']}"
        if self.diagnosis is not None:
            return self.diagnosis.fix
        if self.lost or self.in_float32:
            return _FULLER if self.in_float32 else WIDER if self.lost == WORDS else STEADY
        scaled = f"take the factor out: {self.factor}" if self.factor else None
        return scaled or describe_remedy(cause, message, slug)


def finding(cause: Cause, known: Known, results: Sequence[Result]) -> Finding:
    """Assemble the finding of a cause from the failing rows that it explains."""
    weight = known.weight(cause, results)
    shown = _shown(cause, results, ordinary=weight in _OF_ORDINARY_CALLS)
    slugs = tuple(dict.fromkeys(_telling_first(shown.requirement, results)))
    told = cause  # what is not true of the call that is shown is not said
    if not shown.meets:
        told = replace(cause, condition=replace(cause.condition, names=()), share=0.0)
    return Finding(
        id=identifier(cause),
        weight=weight,
        operation=cause.condition.operation,
        what=sentence(told, known.said(cause, results), shown.message, known.factor, known.witness),
        witness=known.witness,
        when=told.condition.words,
        dtypes=tuple(dict.fromkeys(str(result.dtype) for result in results)),
        requirements=slugs,
        rows=tuple(result.key for result in results),
        counterexample=None if shown.counterexample is None else vars(shown.counterexample),
        precedents=known.diagnosis.precedents if known.diagnosis else (),
        suggestion=_suggestion(results),
        confirmed=cause.confirmed,
        message=shown.message,
        fix=known.fix(told, results, shown.message, shown.requirement),
    )


def identifier(cause: Cause) -> str:
    """Return an identifier that is equal for equal causes in every run of a target."""
    signature, condition = cause.signature, cause.condition
    about = signature.about if condition.requirement or signature.kind in ("raises", "property") else ""
    text = "|".join((condition.operation, signature.kind, about, *condition.names, condition.requirement or ""))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def weight(cause: Cause, diagnosis: Diagnosis | None = None, *, lost: bool = False) -> Weight:
    """Return the severity: at most that of the condition, else the gravest of the explained examples; a leak stays one
    where most of the requirements that fail are about leaks.

    Wrong and leak are said of ordinary calls only: where none fails, the cause is fragile. So is a cause whose
    calls are right in a wider format.
    """
    found = _gravest(cause, diagnosis, lost=lost)
    ordinary = any(example.ordinary for example in cause.explained)
    return found if ordinary or found not in _OF_ORDINARY_CALLS else Weight.FRAGILE


def _gravest(cause: Cause, diagnosis: Diagnosis | None, *, lost: bool) -> Weight:
    """Return the weight by requirements and condition, whatever the calls are."""
    weights = [at_stake(example) for example in cause.explained]
    gravest = min(weights, key=_ORDER.index)
    if gravest.advice:
        return gravest
    ordinary = any(example.row.check.requirement.slug.endswith(_ORDINARY) for example in cause.explained)
    if lost and (diagnosis is None or not (diagnosis.ignored or ordinary)):
        return Weight.FRAGILE
    demands = {example.row.check.requirement.slug: at_stake(example) for example in cause.explained}
    leaks = list(demands.values()).count(Weight.LEAK)
    nothing_to_see = bool(NOTHING_SEEN & set(cause.condition.names))  # what has no right answer lets nothing through
    if cause.condition.weight is Weight.LEAK or (2 * leaks > len(demands) and not nothing_to_see):
        return Weight.LEAK
    if diagnosis is not None and diagnosis.ignored:
        return Weight.WRONG
    return max(gravest, cause.condition.weight, key=_ORDER.index)


def at_stake(example: Example) -> Weight:
    """Return the requirement's weight; a law about what is hidden that is stopped by no number at all lets nothing
    through: what it lets through is judged first, and NaN of finite numbers is wrong."""
    signature = example.signature
    if example.weight is not Weight.LEAK or signature is None or not signature.lost:
        return example.weight
    if signature.kind is Failing.NOT_FINITE:
        return Weight.LEAK if example.poisoned else Weight.WRONG
    return Weight.FRAGILE if signature.kind is Failing.PROPERTY else Weight.LEAK


def no_graver(found: Weight, results: Sequence[Result]) -> Weight:
    """Return the weight of a finding, lowered to advice where each of its rows is advice."""
    advised = all(result.status is Status.ADVICE for result in results)
    return Weight.UNGUARDED if results and advised and not found.advice else found


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by weight, then by how ordinary the failing calls are.

    First come failures in rows of ordinary calls, and overflows in half precision; operations in the order of the
    contract, which builds later ones from earlier ones; then confirmed findings, findings without a condition, and
    those of more rows.
    """

    def place(one: Finding) -> tuple[int, bool, int, bool, bool, int]:
        order = _CONTRACT.get(one.operation, len(_CONTRACT))
        special = not overflows(one) and not any(slug.endswith(_ORDINARY) for slug in one.requirements)
        return _ORDER.index(one.weight), special, order, not one.confirmed, one.when is not None, -len(one.rows)

    return sorted(findings, key=place)


def _suggestion(results: Sequence[Result]) -> Mapping[str, str] | None:
    """Return the claim under which more than half of the rows hold; None where there is none."""
    claims = [tuple(result.suggestion.items()) for result in results if result.suggestion]
    commonest = max(claims, key=claims.count, default=())
    return dict(commonest) if 2 * claims.count(commonest) > len(results) else None


def _convention(suggestion: Mapping[str, str] | None) -> str | None:
    """Return a sentence on the convention that the code follows beside the contract's."""
    if suggestion is None or "convention" not in suggestion:
        return None
    name, value = suggestion["convention"], suggestion["value"]
    aspect = name.partition(".")[2].replace("_", " ")
    return f"follows the convention {aspect} = {value}; the contract has {KNOWN_CONVENTIONS[name][0]}"


def _telling_first(first: str, results: Sequence[Result]) -> list[str]:
    slugs = [result.requirement for result in results]
    return ([first] if first in slugs else []) + slugs


@dataclass(frozen=True)
class _Shown:
    """Message and counterexample that a finding shows, from one row: results in different dtypes are not mixed.

    meets: whether the call meets the finding's condition.
    """

    message: str
    requirement: str
    counterexample: Counterexample | None = None
    meets: bool = True

    @property
    def size(self) -> int:
        """Number of scalars in its calls."""
        return 0 if self.counterexample is None else self.counterexample.scalars or 0

    @property
    def unusual(self) -> bool:
        """Return whether a call of it is known not to be ordinary."""
        return self.counterexample is not None and self.counterexample.ordinary is False


def _shown(cause: Cause, results: Sequence[Result], *, ordinary: bool) -> _Shown:
    """Return the smallest call that meets the condition and failed as the telling example did.

    It is that of a row, made small as it was, or an example as it was drawn. What a graver requirement asks is shown
    before what a lesser one does; ordinary calls come before all others where a finding is about them.
    """
    example = telling(cause)
    alike = first_words(example.message)
    return min(
        [*_made_small(cause.condition, results), *_drawn(cause)],
        key=lambda one: (
            ordinary and one.unusual,
            not one.meets,
            first_words(one.message) != alike,
            requirement(one.requirement).weight.advice,
            one.size,
        ),
        default=_Shown(example.message, example.row.check.requirement.slug),
    )


def _made_small(condition: Condition, results: Sequence[Result]) -> list[_Shown]:
    return [
        _Shown(str(one.message), one.requirement, one.counterexample, _meets(condition, one, one.counterexample))
        for one in results
        if one.counterexample and one.counterexample.scalars is not None
    ]


def _drawn(cause: Cause) -> list[_Shown]:
    """Return the telling example as it was drawn, and the smallest that failed alike under the condition."""
    example = telling(cause)
    alike = [one for one in cause.explained if one.signature == example.signature and one.shown]
    met = [one for one in alike if cause.condition.met(one.calls)]
    smallest = min(met, key=lambda one: one.size, default=None)
    chosen = [one for one in (example, smallest) if one is not None and one.shown]
    return [
        _Shown(one.message, one.row.check.requirement.slug, one.shown(), cause.condition.met(one.calls))
        for one in {id(one): one for one in chosen}.values()
        if one.shown
    ]


def _meets(condition: Condition, result: Result, example: Counterexample) -> bool:
    """Return whether the call of a row has the features of a condition, as far as it was recorded."""
    if not condition.names:
        return True
    arguments = {name: _value(value) for name, value in example.arguments.items()}
    return condition.met((present(result.operation, arguments, dtype=result.dtype) | {GRADIENTS},))


def _value(recorded: Any) -> Any:
    """Return an argument from its record; strides are not in it."""
    if isinstance(recorded, dict) and {"dtype", "shape", "values"} <= recorded.keys():
        values = torch.tensor(_numbers(recorded["values"]), dtype=getattr(torch, recorded["dtype"]))
        return values.reshape(recorded["shape"])
    return [_value(item) for item in recorded] if isinstance(recorded, list) else recorded


def _numbers(values: Any) -> Any:
    """Return nested lists of numbers in which NaN and infinities are words, as in JSON, as numbers."""
    if isinstance(values, list):
        return [_numbers(value) for value in values]
    return float(values) if isinstance(values, str) else values
