"""Evidence: every surveyed example of a row, and its outcome.

A signature says what kind a failure is and of what, alike for every example of one cause.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from veriformer.spec.requirement import Weight
from veriformer.verify.judging.judge import NO_NUMBER, Violation
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import Counterexample
from veriformer.verify.scripts.script import Recorded


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
    """Return the signature of a violation that this operation's judgement raised."""
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
    """Return the arguments whose gradients a line of a script names."""
    return _GRADIENT.findall(expression)


def shortened(text: str) -> str:
    """Return the first line, at most 120 characters, with numbers as ``#`` and shapes as ``[…]``."""
    return _SHAPE.sub("[…]", _NUMBER.sub("#", text.strip().partition("\n")[0]))[:120]


def first_words(message: str | None) -> str:
    """Return the first words of a message without its numbers: the judged quantity, or the exception."""
    return shortened(str(message).partition("[")[0].partition(":")[0])


@dataclass(frozen=True)
class Example:
    """Example of a row.

    calls: for every call that was made, the names of its features. signature: of the failure, None where it held.
    effective: whether it could tell right from wrong. gradients: the arguments whose gradients were judged and are
    not 0. recorded: the calls themselves. size: how many numbers they hold. message: of the violation; shown: it as a
    record. ordinary: whether all its calls are ordinary. off: the largest error in units of its bound, 0 where no
    number was judged. choices: what Hypothesis drew, by which it is made again.
    """

    row: CheckRun
    calls: tuple[frozenset[str], ...]
    signature: Signature | None = None
    effective: bool = True
    gradients: frozenset[str] = frozenset()
    recorded: tuple[Recorded, ...] = field(default=(), repr=False, compare=False)
    size: int = 0
    message: str = ""
    ordinary: bool = True
    off: float = 0.0
    choices: tuple[Any, ...] = field(default=(), repr=False, compare=False)
    shown: Callable[[], Counterexample] | None = field(default=None, repr=False, compare=False)

    @property
    def failed(self) -> bool:
        """True if it was a violation."""
        return self.signature is not None

    @property
    def weight(self) -> Weight:
        """Severity of the requirement."""
        return self.row.check.requirement.weight

    @property
    def poisoned(self) -> bool:
        """Return whether a call holds NaN or inf, which something hidden may let through."""
        return any(name.startswith(_NOT_FINITE) for names in self.calls for name in names)


_NOT_FINITE = ("NaN in ", "inf in ")
"""Beginning of names of features of calls with a number that is not finite; -inf in a mask or a bias hides."""


def failing(examples: Iterable[Example]) -> list[Example]:
    """Return the examples that were violations."""
    return [example for example in examples if example.failed]


def passing(examples: Iterable[Example]) -> list[Example]:
    """Return the examples that held and could have failed."""
    return [example for example in examples if not example.failed and example.effective]
