"""The signature of a failure: what kind it is and of what, the same for every example of one cause."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from veriformer.verify.judging.judge import Violation


class Failing(StrEnum):
    """What a call did where it should have held."""

    RAISES = "raises"
    NOT_FINITE = "not finite"
    VALUE = "value"
    GRADIENT = "gradient"
    PROPERTY = "property"


_NUMBER = re.compile(r"(?<![\w])-?\d[\d.e+-]*|\b(?:nan|inf)\b")
_SHAPE = re.compile(r"[\[(](?:#(?:, ?#)*,?)?[\])]")
_GRADIENT = re.compile(r"_grad_(\w+?)\b")
_RAISED = re.compile(r"^(the backward pass )?raised ")


@dataclass(frozen=True)
class Signature:
    """One kind of failure.

    kind: what happened. about: the exception, the quantity that is wrong or the property that is missing, with every
    number taken out. gradients: the arguments whose gradients the quantity is made of.
    """

    kind: Failing
    about: str
    gradients: tuple[str, ...] = ()


def signature(violation: Violation) -> Signature:
    """The signature of a violation that was raised."""
    if violation.__cause__ is not None and _RAISED.search(str(violation)):
        return Signature(Failing.RAISES, shortened(str(violation).removeprefix("raised ")))
    gradients = _gradients(violation)
    if violation.exact is None:
        return Signature(Failing.PROPERTY, shortened(violation.about), gradients)
    observed, exact = (np.asarray(x, dtype=np.float64) for x in (violation.observed, violation.exact))
    lost = bool((~np.isfinite(observed) & np.isfinite(exact)).any())
    kind = Failing.NOT_FINITE if lost else Failing.GRADIENT if gradients else Failing.VALUE
    return Signature(kind, shortened(violation.about), gradients)


def _gradients(violation: Violation) -> tuple[str, ...]:
    lines = [line for line in violation.lines if line.startswith(("observed =", "raise SystemExit"))]
    return tuple(dict.fromkeys(name for line in lines for name in _GRADIENT.findall(line)))


def shortened(text: str) -> str:
    """The first line without its numbers and sizes."""
    return _SHAPE.sub("[…]", _NUMBER.sub("#", text.strip().partition("\n")[0]))[:120]
