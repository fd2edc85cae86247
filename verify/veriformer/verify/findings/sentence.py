"""A cause in one sentence for people: what is wrong, and when."""

from __future__ import annotations

import re
from dataclasses import replace

from veriformer.spec.requirement import Weight
from veriformer.verify.findings.causes import SELDOM, Cause
from veriformer.verify.findings.evidence import Example
from veriformer.verify.findings.signature import Failing
from veriformer.verify.judging.raising import place_in
from veriformer.verify.results.finding import likewise

_LONGEST = 110


def sentence(
    cause: Cause,
    known: str | None = None,
    message: str | None = None,
    how: str | None = None,
    witness: str | None = None,
) -> str:
    """``attention: the result is NaN with a query that sees no key``; known: what is wrong, where it was recognised.

    message: of the failure that is shown with it; the telling example's if left out. how: how the result is wrong.
    witness: the practice that does likewise.
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
    """The smallest of the examples that fail in the most telling way, of an equation if there is one."""
    alike = [example for example in cause.explained if example.signature == cause.signature]
    return min(
        alike, key=lambda one: (not one.ordinary, not one.row.check.requirement.slug.endswith(".equation"), one.size)
    )


def quantity(cause: Cause) -> str:
    """``result``, or ``gradient of k and v``."""
    return f"gradient of {_named(cause)}" if cause.signature.gradients else "result"


def shortened(text: str) -> str:
    """The first line, cut to a length that a sentence bears."""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _raises(cause: Cause, example: Example) -> str:
    return raises(example.message)


def raises(message: str) -> str:
    """Return what a message of an exception says: ``raises IndexError (index 2 is out of bounds, mine.py:12)``.

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
    """A quantity and its verb: ``the merges are``, ``the norm is``; without where or beside what it was looked at."""
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
