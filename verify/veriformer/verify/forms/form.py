"""Declaration of a form, and the statements of a recognition about a candidate."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from veriformer.verify.forms.candidate import Candidate

Readings = Mapping[str, str]
"""By the name of a convention, the value by which a candidate is called."""


NEAR = 0.5
"""A reading that explains less of the variance of right results is of another operation."""


class Unfit(Exception):
    """A candidate resembles the operation and cannot be judged as it; the message has the reason."""


class OtherParts(Unfit):
    """A module holds norms, which have no part in the operation. names: their paths within the module."""

    def __init__(self, message: str, names: tuple[str, ...]) -> None:
        super().__init__(message)
        self.names = names


class UnknownArgument(Unfit):
    """An argument without a default and with an unknown name: its meaning may be found by trial.

    argument: its name, with ``BUILT`` or ``CALLED`` before it. names: usual names of what is not yet given otherwise.
    parameter: as it is declared; None for an entry of a config.
    """

    def __init__(
        self, message: str, argument: str, names: tuple[str, ...], parameter: inspect.Parameter | None = None
    ) -> None:
        super().__init__(message)
        self.argument, self.names, self.parameter = argument, names, parameter


class NotOffered(ValueError):
    """Code cannot be called in this way by its form, which is no fault of the code: such calls are not provided."""


@dataclass(frozen=True)
class Match:
    """A candidate that a form can call.

    named: whether name and signature both say that it is the operation; one that is not is recognised only where it
    fits everywhere. readings: by convention the values to try, the contract's first. told: what the form fixes, such as
    sizes that are left at their defaults, in a few words each. conventions: of those of the form the values that its
    structure tells. closed: whether the name is the operation's and says no more, so that it is meant however far off.
    left_out: names of parameters that the form knows and cannot use.
    """

    named: bool
    readings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    conventions: Mapping[str, str] = field(default_factory=dict)
    closed: bool = False
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fit:
    """Agreement of one reading with a candidate's results.

    calls: number drawn; answered, and right. ordinary: whether all plain calls were right. share: of all numbers in
    answers those that were right. closeness: the share of the variance of right results that the answers explain, 1
    where they are equal. error: message of refused calls, if any. raised: number that the code itself refused.
    shapeless: number of answers in which some part has another shape than the reference.
    """

    calls: int
    answered: int
    right: int
    ordinary: bool
    share: float
    closeness: float
    error: str = ""
    raised: int = 0
    shapeless: int = 0

    @property
    def everywhere(self) -> bool:
        """True if every answer was right, and there were some."""
        return self.answered > 0 and self.right == self.answered

    @property
    def _digits(self) -> int:
        """The digits in which answers agree with what is right: they tell apart conventions that hardly differ."""
        return round(-math.log10(max(1.0 - self.closeness, 1e-16)))

    def better_than(self, other: Fit) -> bool:
        """Return whether this reading explains more; an equal one does not."""
        return self.rank() > other.rank()

    def rank(self) -> tuple[Any, ...]:
        """Return the sort key by which the reading that explains more is the larger."""
        # A reading that is near but for rounding goes before one that is right where all are, as at position 0.
        # Roughly: two wrong readings that are as near are told apart by the calls that they answer, then by order.
        near = self.closeness >= NEAR
        return (
            *(self.everywhere, self.ordinary, near, self.right, self.answered),
            *(round(self.share, 1), round(self.closeness, 1), self._digits),
        )


@dataclass(frozen=True, kw_only=True)
class Form:
    """A way in which public code offers an operation. See the package for what each field means."""

    name: str
    operation: str
    says: str
    match: Callable[[Candidate], Match | None]
    bind: Callable[[Candidate, Readings], Callable[..., Any]]
    conventions: tuple[str, ...] = ()
    closed: bool = False
    beside: bool = False
    general: bool = False
    neutral: tuple[str, ...] = ()
    rivals: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    variants: Callable[[Callable[..., Any]], Mapping[str, Callable[..., Any]]] | None = None
    terms: Callable[[Callable[..., Any]], Mapping[str, Callable[..., Any]]] | None = None
    told_by: Mapping[str, Callable[[Candidate, Mapping[str, Any], Readings], bool]] = field(default_factory=dict)
    judge: Callable[[Callable[..., Any]], Fit] | None = None
    settled: Callable[[Callable[..., Any]], Mapping[str, str]] | None = None


UNKNOWN = "not known"
"""The value of a reading that no call tells: what it is about is left out of the signature."""
