"""Sentences of a cause: the fault with its condition, and the change to make in the code."""

from __future__ import annotations

import re
from dataclasses import replace

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import requirement
from veriformer.verify.findings.causes import SELDOM, Cause
from veriformer.verify.findings.evidence import Example, Failing
from veriformer.verify.judging.exceptions import place_in
from veriformer.verify.results.finding import likewise

_LONGEST = 110

WIDER = "compute intermediate results in float32, and round the result to the format of the input"
STEADY = "sum in a wider format, or in an order in which rounding errors stay small"
PURE = "make the result depend on the arguments alone: keep no state between calls"
BY_SELECTION = (
    "take hidden entries out by selection (torch.where, masked_fill) before they are multiplied: 0 · NaN is NaN"
)
STABLE = "choose the first of equal scores: sort with stable=True"
_MODIFIED = " was modified"
_FORMS = ("shape", "dtype", "device")


def sentence(
    cause: Cause,
    known: str | None = None,
    message: str | None = None,
    how: str | None = None,
    witness: str | None = None,
) -> str:
    """Return a finding's sentence: ``attention: the result is NaN with a query that sees no key``.

    known: the fault, where it was recognised. message: of the failure that is shown with it; the telling example's if
    left out. how: how the result is wrong. witness: the practice that does likewise.
    """
    said = known or how or _predicate(cause, message)
    some = " for some calls" if cause.share < SELDOM and known is None else ""
    when = "" if known or not cause.condition.names else f" {cause.condition.words}"
    return f"{cause.condition.operation}: {said}{some}{when}{likewise(witness)}"


def _predicate(cause: Cause, message: str | None) -> str:
    example = telling(cause)
    example = example if message is None else replace(example, message=message)
    return {
        Failing.RAISES: _raises,
        Failing.NOT_FINITE: _not_finite,
        Failing.VALUE: _wrong,
        Failing.GRADIENT: _gradient,
        Failing.PROPERTY: _property,
    }[cause.signature.kind](cause, example)


def telling(cause: Cause) -> Example:
    """Return the smallest example with the cause's own signature, of ordinary calls and an equation if there is one."""
    alike = [example for example in cause.explained if example.signature == cause.signature]
    return min(
        alike, key=lambda one: (not one.ordinary, not one.row.check.requirement.slug.endswith(".equation"), one.size)
    )


def quantity(cause: Cause) -> str:
    """Return ``result``, or ``gradient of k and v``."""
    return f"gradient of {_named(cause)}" if cause.signature.gradients else "result"


def shortened(text: str) -> str:
    """Return the first line, cut to _LONGEST characters."""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _raises(cause: Cause, example: Example) -> str:
    return raises(example.message)


def raises(message: str) -> str:
    """Return an exception's message as a phrase: ``raises IndexError (index 2 is out of bounds, mine.py:12)``.

    Where the exception says nothing, the code that raised it does.
    """
    name, _, said = shortened(message).replace("raised ", "raises ", 1).partition(": ")
    place, code = place_in(message) or ("", "")
    told = ", ".join(filter(None, (said.strip() or shortened(code), place)))
    return f"{name.rstrip(': ')} ({told})" if told else name.rstrip(": ")


def _not_finite(cause: Cause, example: Example) -> str:
    if example.weight is Weight.LEAK and example.poisoned:
        return f"NaN or inf in what is hidden reaches the {quantity(cause)}"
    value = "NaN" if "observed nan" in example.message else "infinite"
    law = example.row.check.requirement.bug_class if cause.condition.requirement else ""
    said = f"the {quantity(cause)} is {value}"
    return f"{law}: {said}" if law else said


def _wrong(cause: Cause, example: Example) -> str:
    about = cause.signature.about
    requirement = example.row.check.requirement
    if about.startswith(("result", "# #")) and cause.condition.requirement is None:
        return "the result is wrong"
    article = "" if about.startswith(_DETERMINED) else "the "
    return f"{requirement.bug_class}: {article}{_counted(about)} wrong"


_DETERMINED = ("the ", "a ", "an ", "which ", "what ", "every ")


def _counted(about: str) -> str:
    """Return a quantity and its verb: ``the merges are``, ``the norm is``; without place or circumstance."""
    thing = about.partition(":")[0].replace(" #", "").replace("[…]", "").rstrip()
    noun = re.split(r" (?:of|at|before|after|with|around|in) |,", thing)[0]
    return f"{thing} {'are' if noun.endswith('s') and not noun.endswith('ss') else 'is'}"


def _gradient(cause: Cause, example: Example) -> str:
    return f"the gradient of {_named(cause)} is wrong"


def _named(cause: Cause) -> str:
    names = sorted({name for one in cause.explained if one.signature for name in one.signature.gradients})
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _property(cause: Cause, example: Example) -> str:
    about = cause.signature.about
    if about in ("shape", "dtype", "device"):
        return f"the result has a wrong {about}"
    said = shortened(example.message).replace("was modified", "is modified")
    law = example.row.check.requirement.bug_class if cause.condition.requirement else ""
    return f"{law}: {said}" if law else said


def describe_remedy(cause: Cause, message: str | None, slug: str) -> str:
    """Return what to change by how the calls fail. message: of the call shown; slug: of the requirement it fails."""
    when = f" {cause.condition.words}" if cause.condition.words else ""
    said = message or ""
    if cause.signature.kind is Failing.RAISES:
        return _remedy_of_raising(said, when)
    if cause.signature.kind is Failing.NOT_FINITE:
        shown = telling(cause)
        hidden = shown.weight is Weight.LEAK and shown.poisoned
        return BY_SELECTION if hidden else f"give a finite {quantity(cause)}{when}, as {slug} demands"
    if cause.signature.kind is Failing.GRADIENT:
        return f"make the {quantity(cause)} the derivative of the formula{when}: look for detach, a backward of its own"
    if cause.signature.kind is Failing.VALUE:
        return f"compute the {quantity(cause)}{when} as {_what_computes(slug)}"
    return _remedy_of_property(cause.signature.about, said, when, slug)


def _remedy_of_raising(message: str, when: str) -> str:
    place = place_in(message)
    at = f" (line {place[0]})" if place else ""
    return f"answer calls{when} where it {raises(message).partition(' (')[0]}{at}, or refuse every call of that kind"


def _remedy_of_property(about: str, message: str, when: str, slug: str) -> str:
    if _MODIFIED in message:
        return f"work on a copy of {message.partition(_MODIFIED)[0]}{when} instead of modifying it"
    if about in _FORMS:
        expected = shortened(message).partition("expected ")[2].rsplit(", ", len(_FORMS) - 1)
        which = expected[_FORMS.index(about)] if len(expected) == len(_FORMS) else expected[0]
        return f"return the {about} that is expected{when}{f': {which}' if which else ''}"
    return f"meet {slug}{when}: {shortened(message)}"


def _what_computes(slug: str) -> str:
    """Return the reference for the computation: the requirement's equations, or the requirement."""
    numbers = requirement(slug).equations
    if not numbers:
        return f"{slug} demands"
    return f"equation {numbers[0]} has it" if len(numbers) == 1 else f"equations {', '.join(numbers)} have it"
