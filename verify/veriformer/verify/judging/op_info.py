"""Operation records: how to draw arguments for an operation, its formulas in the spec, its invalid calls.

Checks that mean the same for every operation (shape, equation, gradient, purity, layout, refusal, …) are written once,
as functions over this record.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from veriformer.spec.arithmetic import RunningError
from veriformer.verify.contract import dtypes
from veriformer.verify.judging.arithmetic import over_float64
from veriformer.verify.judging.judge import Bools, Floats, Reference
from veriformer.verify.judging.outcome import Observation, Outcome
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.targets.claims import Claims

Formula = Callable[[Any, Mapping[str, Any]], Sequence[Any]]
"""Function of the arithmetic and the lifted arguments that gives the values of every part of the result."""

Vjp = Callable[[Any, Mapping[str, Any], Any], Mapping[str, Any]]
"""Vector-Jacobian product: from the arithmetic, the lifted arguments and the cotangent to the gradient by argument."""


Index = tuple[slice, ...]


@dataclass(frozen=True)
class InvalidCall:
    """Call that must be refused. names: the wrong argument, or those that clash; the message must name one."""

    what: str
    arguments: Arguments
    names: tuple[str, ...]


def _nothing(claims: Claims) -> dict[str, Any]:
    return {}


def _whole(outcome: Outcome, arguments: Arguments) -> list[Observation]:
    return [outcome.result]


def _none(arguments: Arguments, part: int) -> Bools | None:
    return None


def _never(arguments: Arguments, part: int) -> bool:
    return False


def _own_dtype(trial: Trial, arguments: Arguments, part: int) -> torch.dtype:
    return trial.dtype


@dataclass(frozen=True, kw_only=True)
class OpInfo:
    """Record of an operation for the families of checks.

    name: as in the contract. sample: arguments with every option that is admitted; sample_basic: the plainest call.
    formulas, vjps: the spec's first. The others are equal to it over the reals and computed otherwise; what rounding
    may do to them a correct implementation may do too: the bound of a judgement is the largest of theirs. They may give
    nothing for a call in which their bounds are no larger.
    inputs: arguments that have a gradient. ranking: those whose values choose among others.
    convention_kwargs: claimed conventions as further arguments of the formulas.
    parts: the tensors of a result, in the order of the formula's values; result_dtype: the dtype of each;
    advised_dtype: whether that is advice, as it is for every part of the operations in ``dtypes.CHOSEN``.
    unjudged: the entries of a part of which the contract says nothing, as what padded queries give; None without any.
    invalid_calls: calls that must be refused. batch_slice: a call, one that computes a slice of it alone, and by
    ``"result"`` and by argument where that slice lies. argument_perturbations: a call, and the same with one argument
    changed, by what was changed. sample_accuracy: arguments with enough entries to tell how large rounding errors are
    on average. sample_large: axes longer than a tile.
    dtypes: record names of the formats in which the operation is judged. structural_dtypes: those in which purity,
    layout, refusals and the like are, which seldom depend on the format. use_exact_oracle: whether fp64 is judged by
    the exact oracle; where that takes too long, float64 serves, with bounds that are a few roundoffs wider.
    separate: the results and gradients no two entries of which are computed from the same rounded value, as where an
    operation works entry by entry.
    A result that is no tensor has no formulas: checks of its own say what it must be.
    """

    name: str
    sample: Callable[[Trial], Arguments]
    sample_basic: Callable[[Trial], Arguments]
    formulas: tuple[Formula, ...] = ()
    vjps: tuple[Vjp, ...] = ()
    inputs: tuple[str, ...] = ()
    ranking: tuple[str, ...] = ()
    invalid_calls: Callable[[Trial], Iterable[InvalidCall]]
    batch_slice: Callable[[Trial], tuple[Arguments, Arguments, Mapping[str, Index]]] | None = None
    argument_perturbations: Callable[[Trial], tuple[Arguments, Mapping[str, Arguments]]] | None = None
    sample_accuracy: Callable[[Trial], Arguments] | None = None
    sample_large: Callable[[Trial], Arguments] | None = None
    convention_kwargs: Callable[[Claims], dict[str, Any]] = _nothing
    parts: Callable[[Outcome, Arguments], list[Observation]] = _whole
    result_dtype: Callable[[Trial, Arguments, int], torch.dtype] = _own_dtype
    advised_dtype: Callable[[Arguments, int], bool] = _never
    unjudged: Callable[[Arguments, int], Bools | None] = _none
    structural_dtypes: tuple[str, ...] = dtypes.NAMES
    dtypes: tuple[str, ...] = dtypes.NAMES
    use_exact_oracle: bool = True
    separate: tuple[str, ...] = ()

    def lift(self, trial: Trial, arguments: Arguments, xp: Any) -> dict[str, Any]:
        """Return the arguments as the formulas take them, with the target's constants for what the call leaves out."""
        return dict(trial.constants) | trial.lift(arguments, xp) | self.convention_kwargs(trial.claims)

    def dtype_is_advice(self, arguments: Arguments, part: int) -> bool:
        """Return whether the floating dtype of this part of a result is advice only."""
        return self.name in dtypes.CHOSEN or self.advised_dtype(arguments, part)

    def differentiable(self, arguments: Arguments) -> tuple[str, ...]:
        """Return the names of the arguments of this call that have a gradient."""
        return tuple(name for name in self.inputs if isinstance(arguments.get(name), torch.Tensor))

    def exact(self, trial: Trial, arguments: Arguments, *, use_exact_oracle: bool = True) -> list[Reference]:
        """Return the references of all parts of the result. use_exact_oracle: for fp64, else wider bounds."""
        found = self._references(
            trial, arguments, lambda formula, xp, lifted: list(formula(xp, lifted)), self.formulas, use_exact_oracle
        )
        return [
            _with_unjudged_entries(reference, self.unjudged(arguments, part)) for part, reference in enumerate(found)
        ]

    def exact_gradients(
        self, trial: Trial, arguments: Arguments, cotangent: torch.Tensor, *, use_exact_oracle: bool = True
    ) -> dict[str, Reference]:
        """Return the reference of the gradient of every differentiable argument."""
        names = self.differentiable(arguments)

        def listed(vjp: Vjp, xp: Any, lifted: Mapping[str, Any]) -> list[Any]:
            gradients = vjp(xp, lifted, xp.asarray(trial.lift({"g": cotangent}, xp)["g"]))
            return [gradients[name] for name in names] if gradients else []

        return dict(zip(names, self._references(trial, arguments, listed, self.vjps, use_exact_oracle), strict=True))

    def _references(
        self,
        trial: Trial,
        arguments: Arguments,
        evaluate: Callable[[Any, Any, Mapping[str, Any]], list[Any]],
        forms: Sequence[Any],
        use_exact_oracle: bool,
    ) -> list[Reference]:
        exactly = use_exact_oracle and self.use_exact_oracle
        lifted = functools.cache(lambda xp: self.lift(trial, arguments, xp))

        def values_of(index: int, xp: RunningError) -> list[Any]:
            return evaluate(forms[index], xp, dict(lifted(xp)))

        if not forms:
            return []
        xp = trial.xp if exactly else over_float64(trial.dtype_name)
        found = [_reference(xp, x) for x in values_of(0, xp)]
        return _widening(found, over_float64(trial.dtype_name), values_of, len(forms)) if len(forms) > 1 else found


def _widening(
    found: list[Reference], xp: RunningError, values_of: Callable[[int, RunningError], list[Any]], forms: int
) -> list[Reference]:
    """Return the references with bounds that widen on demand to the largest of all forms."""

    @functools.cache
    def wide() -> list[Floats]:
        bounds = [reference.bound for reference in found]
        for index in range(1, forms):
            if values := values_of(index, xp):
                bounds = [_wider(bound, xp, x) for bound, x in zip(bounds, values, strict=True)]
        return bounds

    return [
        Reference(
            reference.exact,
            reference.bound,
            constant=reference.constant,
            widen=functools.partial(_part, wide, part),
        )
        for part, reference in enumerate(found)
    ]


def _with_unjudged_entries(reference: Reference, unjudged: Bools | None) -> Reference:
    """Return the reference with an infinite bound on the unjudged entries."""
    if unjudged is None:
        return reference
    return Reference(reference.exact, np.where(unjudged, np.inf, reference.bound), constant=True)


def _part(bounds: Callable[[], list[Floats]], part: int) -> Floats:
    return bounds()[part]


def _reference(xp: RunningError, x: Any) -> Reference:
    if isinstance(x, np.ndarray):  # masks are known exactly
        return Reference(x.astype(np.float64), np.zeros(x.shape), constant=True)
    return Reference(*xp.judgeable(x))


def _wider(before: Floats, xp: RunningError, x: Any) -> Floats:
    """Return the larger of the bound and that of another form; infinite where the form breaks down."""
    value, bound = xp.judgeable(x)
    broken = np.isnan(value) | np.isnan(bound)
    wide: Floats = np.where(broken, np.inf, np.fmax(before, bound))
    return wide
