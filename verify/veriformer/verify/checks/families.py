"""Checks that mean the same for every operation, written once over its record."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis.strategies as st
import torch

from veriformer.spec.requirements import requirement
from veriformer.verify.check import Check
from veriformer.verify.checks.agreement import agrees, gradients_agree, has_form
from veriformer.verify.operation import Operation
from veriformer.verify.operations import OPERATIONS
from veriformer.verify.strategies import layouts, values
from veriformer.verify.trial import Arguments, Trial

Body = Callable[[Operation, Trial], None]


def _contract(operation: Operation, trial: Trial) -> None:
    arguments = operation.ordinary(trial)
    outcome = trial.call(arguments)
    for part, reference in enumerate(operation.exact(trial, arguments, sharp=False)):
        observed = operation.parts(outcome, arguments)[part]
        dtype = operation.result_dtype(trial, arguments, part)
        has_form(trial, observed, reference.exact.shape, dtype, observed.expression.replace(outcome.name, "the result"))


def _equation(operation: Operation, trial: Trial) -> None:
    arguments = operation.draw(trial)
    agrees(trial, operation, arguments, trial.call(arguments), operation.exact(trial, arguments))


def draw_cotangent(trial: Trial, shape: tuple[int, ...]) -> torch.Tensor:
    """Random, seldom uniform, under any strides."""
    g = trial.tensor(trial.draw(values()).array(*(shape or (1,))))
    return trial.draw(layouts()).of(g if shape else g[0])


def draw_wrt(trial: Trial, operation: Operation, arguments: Arguments) -> tuple[str, ...]:
    """Which of the differentiable arguments ask for a gradient: most often all, sometimes only some."""
    names = operation.differentiable(arguments)
    if len(names) == 1 or trial.draw(st.booleans()):
        return names
    kept = trial.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    return tuple(name for name in names if name in kept)


def _gradient(operation: Operation, trial: Trial) -> None:
    arguments = operation.draw(trial)
    references = operation.exact(trial, arguments, sharp=False)
    cotangent = draw_cotangent(trial, references[0].exact.shape)
    outcome = trial.call(arguments, wrt=draw_wrt(trial, operation, arguments), cotangent=cotangent)
    gradients_agree(trial, outcome, operation.exact_gradients(trial, arguments, cotangent))


def _over(operations: tuple[Operation, ...], family: str, body: Body, **options: object) -> list[Check]:
    def bound(operation: Operation) -> Callable[[Trial], None]:
        return lambda trial: body(operation, trial)

    return [
        Check(requirement=requirement(f"{operation.name}.{family}"), body=bound(operation), **options)  # type: ignore[arg-type]
        for operation in operations
    ]


_DIFFERENTIABLE = tuple(operation for operation in OPERATIONS if operation.vjps)

CHECKS = (
    *_over(OPERATIONS, "contract", _contract, effort=0.25),
    *_over(OPERATIONS, "equation", _equation),
    *_over(_DIFFERENTIABLE, "gradient", _gradient),
)
