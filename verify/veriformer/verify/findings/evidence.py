"""Evidence: what every surveyed example of a row was, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from veriformer.spec.requirement import Weight
from veriformer.verify.findings.signature import Signature
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import Counterexample
from veriformer.verify.scripts.script import Recorded


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
