"""Judgement of results: ``|got − exact| / bound ≤ 1`` per element, and nothing else.

A violation is raised, never returned, so that no caller can drop it. A reference that could not tell right from wrong
(empty, constant, or with a bound as large as the values) is judged all the same but counted as not exercised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.intp]

NO_NUMBER = "is not finite"
"""Ending of the message of a violation that only says that entries are NaN or infinite."""


class Violation(Exception):  # (a finding about the target, not an error of ours)
    """Evidence that the implementation breaks a requirement.

    lines: Python lines that repeat the verdict on the variables of a reproducing script; they end in ``SystemExit``.
    about: the quantity that was judged, or the property required, equal for every example of one kind of failure.
    expression: the script's expression of a quantity that left its bound; the lines that judge it follow from that, and
        are written once the smallest example is known.
    """

    def __init__(
        self,
        message: str,
        *,
        lines: list[str] | None = None,
        observed: object = None,
        exact: object = None,
        bound: object = None,
        about: str = "",
    ) -> None:
        super().__init__(message)
        self.about = about or message
        self.lines = lines or []
        self.observed = observed
        self.exact = exact
        self.bound = bound
        self.expression = ""


class HarnessError(Exception):
    """Error of the suite itself: a reference that is NaN, shapes of the spec's own that do not match."""


class Undefined(HarnessError):
    """Undefined value of the formula for an admitted call."""


class Reference:
    """Reference value of a result, and the error bound of correct implementations.

    exact: float64 values. bound: float64 of equal shape, ``inf`` where no bound is known.
    narrow: a sufficient bound that may be smaller; where it holds, ``bound`` is never computed.
    scale: the size against which a bound counts as vacuous; by default the largest exact magnitude.
    constant: whether the law is about a reference with one value everywhere.
    widen: computes ``bound``, where the one given is only ``narrow``.
    """

    def __init__(
        self,
        exact: Floats,
        bound: Floats,
        *,
        scale: float | None = None,
        constant: bool = False,
        widen: Callable[[], Floats] | None = None,
    ) -> None:
        self.exact, self.narrow = exact, bound
        self.scale, self.constant, self.widen = scale, constant, widen
        self._admit(bound)

    def _admit(self, bound: Floats) -> None:
        if self.exact.shape != bound.shape:
            raise HarnessError(f"reference: exact has shape {self.exact.shape}, bound {bound.shape}")
        if np.isnan(self.exact).any() or np.isnan(bound).any():
            raise Undefined("reference: the spec gives NaN for an admitted input")

    @cached_property
    def bound(self) -> Floats:
        """Error bound of correct implementations."""
        if self.widen is None:
            return self.narrow
        wide = self.widen()
        self._admit(wide)
        return wide

    def narrowed(self, observed: Floats) -> Reference:
        """Return a reference with the narrow bound if the observed values keep it, else with the whole bound."""
        if self.widen is None:
            return self
        narrow = Reference(self.exact, self.narrow, scale=self.scale, constant=self.constant)
        if observed.shape == self.exact.shape and bool((ratios(observed, narrow) <= 1).all()):
            return narrow
        return Reference(self.exact, self.bound, scale=self.scale, constant=self.constant)

    @property
    def effective(self) -> bool:
        """True if the reference can tell right from wrong: values vary, some bound is 0 or below their scale."""
        if self.exact.size == 0:
            return False
        finite = np.isfinite(self.exact)
        scale = self.scale if self.scale is not None else np.abs(self.exact[finite]).max(initial=0.0)
        varied = self.constant or self.exact.size == 1 or bool((self.exact != self.exact.flat[0]).any())
        sharp = (self.bound < scale) | (self.bound == 0) | ~finite
        return varied and bool(sharp.any())


@dataclass(frozen=True)
class SignedErrors:
    """Signed errors of one example: inputs, and errors from the rounded exact value, in units of the bound.

    observed: errors of the target; forms: of every admitted form, in plain arithmetic of the dtype. All of one length.
    separate: whether no two entries are computed from the same rounded value, so that their errors are independent.
    """

    inputs: Floats
    observed: Floats
    forms: tuple[Floats, ...]
    separate: bool


@dataclass(frozen=True)
class SquaredError:
    """Mean square error of one example as a multiple of the explained error, over ``entries`` entries."""

    multiple: float
    entries: int


@dataclass
class RunStatistics:
    """Statistics of the judgements of one row.

    worst_size: the number of entries of the calls that gave worst_ratio; None where it is not that of one example.
    squared_errors: by quantity, those of the examples. signed_errors: by quantity, the errors themselves, entry by
    entry.
    covered: by large sizes, alone or combined, the number of examples that had them. remark: a note on a row that
    holds.
    refused: by feature, the message with which optional calls were refused.
    """

    examples: int = 0
    vacuous: int = 0
    worst_ratio: float | None = None
    worst_size: int | None = None
    failed: bool = False
    squared_errors: dict[str, list[SquaredError]] = field(default_factory=dict)
    covered: Counter[str] = field(default_factory=Counter)
    signed_errors: dict[str, list[SignedErrors]] = field(default_factory=dict)
    remark: str | None = None
    refused: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def sized(self, size: Callable[[], int | None]) -> Iterator[None]:
        """Record the size of the example if its worst ratio exceeds all before."""
        before = self.worst_ratio
        try:
            yield
        finally:
            if self.worst_ratio != before:
                self.worst_size = size()

    def note(self, ratio: float) -> None:
        """Record the largest ratio seen."""
        self.worst_ratio = ratio if self.worst_ratio is None else max(self.worst_ratio, ratio)


def ratios(observed: Floats, reference: Reference) -> Floats:
    """Return |observed − exact| / bound per element: 0 where equal, ``inf`` where a value is not finite."""
    same = observed == reference.exact
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        ratio = np.abs(observed - reference.exact) / reference.bound
    ratio = np.where(np.isnan(ratio) | ~np.isfinite(observed), np.inf, ratio)
    return np.where(same | np.isposinf(reference.bound), 0.0, ratio)


def assert_within_bound(
    observed: Floats, reference: Reference, statistics: RunStatistics, *, what: str, lines: list[str]
) -> None:
    """Raise Violation unless every element lies within its bound."""
    if observed.shape != reference.exact.shape:
        raise HarnessError(f"{what}: judged shape {observed.shape} against {reference.exact.shape}")
    if observed.size == 0:
        return
    ratio = ratios(observed, reference)
    worst = np.unravel_index(int(ratio.argmax()), ratio.shape)
    statistics.note(float(ratio[worst]))
    if ratio[worst] > 1:
        raise Violation(
            _message(what, worst, observed, reference, float(ratio[worst])),
            lines=lines,
            observed=observed,
            exact=reference.exact,
            bound=reference.bound,
            about=what,
        )


def _message(what: str, index: tuple[np.intp, ...], observed: Floats, reference: Reference, ratio: float) -> str:
    place = f"[{', '.join(str(int(i)) for i in index)}]" if index else ""
    return (
        f"{what}{place}: observed {observed[index]:.9g}, exact {reference.exact[index]:.9g}, "
        f"off by {abs(observed[index] - reference.exact[index]):.3g}, bound {reference.bound[index]:.3g} "
        f"(ratio {ratio:.3g})"
    )
