"""The signature of a failure: what kind it is and of what, the same for every example of one cause."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from veriformer.verify.judging.judge import NO_NUMBER, Violation


class Failing(StrEnum):
    """Kinds of failure of a call."""

    RAISES = "raises"
    NOT_FINITE = "not finite"
    VALUE = "value"
    GRADIENT = "gradient"
    PROPERTY = "property"


_NUMBER = re.compile(r"(?<![\w])-?\d[\d.e+-]*|\b(?:nan|inf)\b")
_SHAPE = re.compile(r"[\[(](?:#(?:, ?#)*,?)?[\])]")
_OTHER_VALUE = " instead of "
"""Separator in the message on results that are no tensors and have another value than the right one."""

_DROPPING = ("top_k_filter", "top_p_filter")
"""Operations that give an infinity where they drop an entry: it is a value like others."""

_GRADIENT = re.compile(r"_grad_(\w+?)\b")
RAISED = re.compile(r"^(the backward pass )?raised ")
"""Beginning of the message of an exception."""


@dataclass(frozen=True)
class Signature:
    """Kind of failure.

    kind: its class. about: the exception, the quantity that is wrong or the property that is missing, with every number
    taken out. gradients: the arguments whose gradients the quantity is made of. drops: whether an entry is dropped that
    is to stay, of operations that drop entries.
    """

    kind: Failing
    about: str
    gradients: tuple[str, ...] = ()
    drops: bool = field(default=False, compare=False)

    @property
    def lost(self) -> bool:
        """True if a finite value was lost to NaN or infinity, judged by itself or beside the right value."""
        return self.kind is Failing.NOT_FINITE or (self.kind is Failing.PROPERTY and self.about.endswith(NO_NUMBER))


def signature(violation: Violation, operation: str) -> Signature:
    """The signature of a violation that was raised when this operation was judged."""
    if violation.__cause__ is not None and RAISED.search(str(violation)):
        return Signature(Failing.RAISES, shortened(str(violation).removeprefix("raised ")))
    gradients = _gradients(violation)
    if violation.exact is None:
        kind = Failing.VALUE if _OTHER_VALUE in str(violation) else Failing.PROPERTY
        return Signature(kind, shortened(violation.about), gradients)
    observed, exact = (np.asarray(x, dtype=np.float64) for x in (violation.observed, violation.exact))
    values = ~np.isnan(observed) if operation in _DROPPING else np.isfinite(observed)
    lost = bool((~values & np.isfinite(exact)).any())
    kind = Failing.NOT_FINITE if lost else Failing.GRADIENT if gradients else Failing.VALUE
    drops = operation in _DROPPING and bool((np.isneginf(observed) & np.isfinite(exact)).any())
    return Signature(kind, shortened(violation.about), gradients, drops)


def _gradients(violation: Violation) -> tuple[str, ...]:
    lines = [violation.expression, *(line for line in violation.lines if line.startswith("raise SystemExit"))]
    return tuple(dict.fromkeys(name for line in lines for name in gradients_in(line)))


def gradients_in(expression: str) -> list[str]:
    """The arguments whose gradients a line of a script speaks of."""
    return _GRADIENT.findall(expression)


def shortened(text: str) -> str:
    """The first line without its numbers and sizes."""
    return _SHAPE.sub("[…]", _NUMBER.sub("#", text.strip().partition("\n")[0]))[:120]


def first_words(message: str | None) -> str:
    """Return the first words of a message without its numbers, which name what was judged, or the exception."""
    return shortened(str(message).partition("[")[0].partition(":")[0])
