"""Families of every operation without exception: form, equation, gradient."""

from __future__ import annotations

from veriformer.verify.contract import dtypes
from veriformer.verify.families.judged import DIFFERENTIABLE, JUDGED
from veriformer.verify.judging.check import Check
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.agreement import agrees, has_form
from veriformer.verify.laws.family import over
from veriformer.verify.laws.gradients import judge_with_gradients

ADVISED = tuple(one for one in JUDGED if one.name in dtypes.CHOSEN or one.name == "clip_grad_norm")
"""Operations with results whose dtype is advice."""


def _contract(operation: OpInfo, trial: Trial) -> None:
    _has_form(operation, trial, strictly=False)


def _result_dtype(operation: OpInfo, trial: Trial) -> None:
    _has_form(operation, trial, strictly=True)


def _has_form(operation: OpInfo, trial: Trial, *, strictly: bool) -> None:
    """Raise Violation unless an ordinary call gives the promised form; strictly: also in a dtype that is advice."""
    arguments = operation.sample_basic(trial)
    outcome = trial.call(arguments)
    for part, reference in enumerate(operation.exact(trial, arguments, use_exact_oracle=False)):
        observed = operation.parts(outcome, arguments)[part]
        dtype = operation.result_dtype(trial, arguments, part)
        what = observed.expression.replace(outcome.name, "the result")
        any_floating = not strictly and operation.dtype_is_advice(arguments, part)
        has_form(trial, observed, reference.exact.shape, dtype, what, any_floating=any_floating)


def _equation(operation: OpInfo, trial: Trial) -> None:
    arguments = operation.sample(trial)
    agrees(trial, operation, arguments, trial.call(arguments), operation.exact(trial, arguments))


def _gradient(operation: OpInfo, trial: Trial) -> None:
    judge_with_gradients(trial, operation, operation.sample(trial), alone=True)


def _equation_of(operation: OpInfo) -> tuple[Check, ...]:
    """Return the check of the equation, with as many examples in all for one format as for four."""
    return over([operation], "equation", _equation, effort=2 * len(dtypes.NAMES) / len(operation.dtypes))


CHECKS = (
    *over(JUDGED, "contract", _contract, effort=0.25),
    *over(ADVISED, "result_dtype", _result_dtype, effort=0.25),
    *(check for operation in JUDGED for check in _equation_of(operation)),
    *over(DIFFERENTIABLE, "gradient", _gradient, effort=2),
)
