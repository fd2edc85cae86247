"""Remedies: one sentence of what to change in the code where a cause is confirmed."""

from __future__ import annotations

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import requirement
from veriformer.verify.findings.causes import Cause
from veriformer.verify.findings.sentence import quantity, raises, shortened, telling
from veriformer.verify.findings.signature import Failing
from veriformer.verify.judging.raising import place_in

WIDER = "compute intermediate results in float32, and round the result to the format of the input"
STEADY = "sum in a wider format, or in an order in which rounding errors stay small"
PURE = "make the result depend on the arguments alone: keep no state between calls"
BY_SELECTION = (
    "take hidden entries out by selection (torch.where, masked_fill) before they are multiplied: 0 · NaN is NaN"
)
STABLE = "choose the first of equal scores: sort with stable=True"
_MODIFIED = " was modified"
_FORMS = ("shape", "dtype", "device")


def describe_remedy(cause: Cause, message: str | None, slug: str) -> str:
    """Return what to change by how the calls fail. message: of the call shown; slug: of the requirement it fails."""
    when = f" {cause.condition.words}" if cause.condition.words else ""
    said = message or ""
    if cause.signature.kind is Failing.RAISES:
        return _raising(said, when)
    if cause.signature.kind is Failing.NOT_FINITE:
        shown = telling(cause)
        hidden = shown.weight is Weight.LEAK and shown.poisoned
        return BY_SELECTION if hidden else f"give a finite {quantity(cause)}{when}, as {slug} demands"
    if cause.signature.kind is Failing.GRADIENT:
        return f"make the {quantity(cause)} the derivative of the formula{when}: look for detach, a backward of its own"
    if cause.signature.kind is Failing.VALUE:
        return f"compute the {quantity(cause)}{when} as {_source(slug)}"
    return _of_property(cause.signature.about, said, when, slug)


def _raising(message: str, when: str) -> str:
    place = place_in(message)
    at = f" (line {place[0]})" if place else ""
    return f"answer calls{when} where it {raises(message).partition(' (')[0]}{at}, or refuse every call of that kind"


def _of_property(about: str, message: str, when: str, slug: str) -> str:
    if _MODIFIED in message:
        return f"work on a copy of {message.partition(_MODIFIED)[0]}{when} instead of modifying it"
    if about in _FORMS:
        expected = shortened(message).partition("expected ")[2].rsplit(", ", len(_FORMS) - 1)
        which = expected[_FORMS.index(about)] if len(expected) == len(_FORMS) else expected[0]
        return f"return the {about} that is expected{when}{f': {which}' if which else ''}"
    return f"meet {slug}{when}: {shortened(message)}"


def _source(slug: str) -> str:
    """Return what says how it is computed: the equations of the requirement, or itself."""
    numbers = requirement(slug).equations
    if not numbers:
        return f"{slug} demands"
    return f"equation {numbers[0]} has it" if len(numbers) == 1 else f"equations {', '.join(numbers)} have it"
