"""An operation as data: how to draw arguments for it, what the spec says of them, what it refuses.

Checks that mean the same for every operation (shape, equation, gradient, purity, layout, refusal, …) are written once,
as functions over this record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from veriformer.spec.arithmetic import RunningError
from veriformer.verify.contract import dtypes
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.trial import Arguments, Observation, Outcome, Trial, over_float64
from veriformer.verify.targets.claims import Claims

Formula = Callable[[Any, Mapping[str, Any]], Sequence[Any]]
"""From the arithmetic and the lifted arguments to the values of every part of the result."""

Vjp = Callable[[Any, Mapping[str, Any], Any], Mapping[str, Any]]
"""From the arithmetic, the lifted arguments and the cotangent to the gradient by argument."""


Index = tuple[slice, ...]


@dataclass(frozen=True)
class Refusal:
    """A call that must be refused. names: the culprit, or the arguments that clash; the message must name one."""

    what: str
    arguments: Arguments
    names: tuple[str, ...]


def _nothing(claims: Claims) -> dict[str, Any]:
    return {}


def _whole(outcome: Outcome, arguments: Arguments) -> list[Observation]:
    return [outcome.result]


def _own_dtype(trial: Trial, arguments: Arguments, part: int) -> torch.dtype:
    return trial.dtype


@dataclass(frozen=True, kw_only=True)
class Operation:
    """What the families of checks need to know of an operation.

    name: as in the contract. draw: arguments with every option that is admitted; ordinary: the plainest call.
    formulas, vjps: the spec's first. The others are equal to it over the reals and computed otherwise; what rounding
    may do to them a correct implementation may do too: the bound of a judgement is the largest of theirs. They may give
    nothing for a call in which their bounds are no larger.
    inputs: arguments that have a gradient. ranking: those whose values choose among others. reading: claimed
    conventions as further arguments of the formulas.
    parts: the tensors of a result, in the order of the formula's values; result_dtype: the dtype of each.
    refusals: calls that must be refused. part: a call, one that computes a part of it alone, and by ``"result"`` and by
    argument where that part lies. changes: a call, and the same with one argument changed, by what was changed.
    bulk: arguments with enough entries to tell how large rounding errors are on average. long: axes longer than a tile.
    dtypes: record names of the formats in which the operation is judged. forms: those in which purity, layout, refusals
    and the like are, which seldom depend on the format. sharp: whether fp64 is judged by the exact
    oracle; where that takes too long, float64 serves, with bounds that are a few roundoffs wider.
    A result that is no tensor has no formulas: checks of its own say what it must be.
    """

    name: str
    draw: Callable[[Trial], Arguments]
    ordinary: Callable[[Trial], Arguments]
    formulas: tuple[Formula, ...] = ()
    vjps: tuple[Vjp, ...] = ()
    inputs: tuple[str, ...] = ()
    ranking: tuple[str, ...] = ()
    refusals: Callable[[Trial], Iterable[Refusal]]
    part: Callable[[Trial], tuple[Arguments, Arguments, Mapping[str, Index]]] | None = None
    changes: Callable[[Trial], tuple[Arguments, Mapping[str, Arguments]]] | None = None
    bulk: Callable[[Trial], Arguments] | None = None
    long: Callable[[Trial], Arguments] | None = None
    reading: Callable[[Claims], dict[str, Any]] = _nothing
    parts: Callable[[Outcome, Arguments], list[Observation]] = _whole
    result_dtype: Callable[[Trial, Arguments, int], torch.dtype] = _own_dtype
    forms: tuple[str, ...] = dtypes.NAMES
    dtypes: tuple[str, ...] = dtypes.NAMES
    sharp: bool = True

    def lift(self, trial: Trial, arguments: Arguments, xp: Any) -> dict[str, Any]:
        """The arguments as the formulas take them, with the constants that stand for what the call leaves out."""
        return dict(trial.constants) | trial.lift(arguments, xp) | self.reading(trial.claims)

    def differentiable(self, arguments: Arguments) -> tuple[str, ...]:
        """The arguments of this call that have a gradient."""
        return tuple(name for name in self.inputs if isinstance(arguments.get(name), torch.Tensor))

    def exact(self, trial: Trial, arguments: Arguments, *, sharp: bool = True) -> list[Reference]:
        """What every part of the result must be. sharp: the exact oracle for fp64, else float64 with wider bounds."""
        return self._references(
            trial, arguments, lambda formula, xp, lifted: list(formula(xp, lifted)), self.formulas, sharp
        )

    def exact_gradients(
        self, trial: Trial, arguments: Arguments, cotangent: torch.Tensor, *, sharp: bool = True
    ) -> dict[str, Reference]:
        """What the gradient of every differentiable argument must be."""
        names = self.differentiable(arguments)

        def listed(vjp: Vjp, xp: Any, lifted: Mapping[str, Any]) -> list[Any]:
            gradients = vjp(xp, lifted, xp.asarray(trial.lift({"g": cotangent}, xp)["g"]))
            return [gradients[name] for name in names]

        return dict(zip(names, self._references(trial, arguments, listed, self.vjps, sharp), strict=True))

    def _references(
        self,
        trial: Trial,
        arguments: Arguments,
        evaluate: Callable[[Any, Any, Mapping[str, Any]], list[Any]],
        forms: Sequence[Any],
        sharp: bool,
    ) -> list[Reference]:
        found: list[Reference] = []
        for index, form in enumerate(forms):
            xp = trial.xp if sharp and self.sharp and index == 0 else over_float64(trial.dtype_name)
            values = evaluate(form, xp, self.lift(trial, arguments, xp))
            if index and not values:
                continue
            found = (
                [_wider(r, xp, x) for r, x in zip(found, values, strict=True)]
                if index
                else [_reference(xp, x) for x in values]
            )
        return found


def _reference(xp: RunningError, x: Any) -> Reference:
    if isinstance(x, np.ndarray):  # masks are known exactly
        return Reference(x.astype(np.float64), np.zeros(x.shape), constant=True)
    return Reference(*xp.judgeable(x))


def _wider(found: Reference, xp: RunningError, x: Any) -> Reference:
    """The same values with the bound of another form, where that is larger; none where the form breaks down."""
    value, bound = xp.judgeable(x)
    broken = np.isnan(value) | np.isnan(bound)
    return Reference(found.exact, np.where(broken, np.inf, np.fmax(found.bound, bound)))
