"""The families that hold for every operation without exception: form, equation, gradient."""

from __future__ import annotations

from veriformer.verify.contract import dtypes
from veriformer.verify.families.judged import DIFFERENTIABLE, JUDGED
from veriformer.verify.judging.check import Check
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.agreement import agrees, has_form
from veriformer.verify.laws.family import over
from veriformer.verify.laws.gradients import judge_with_gradients


def _contract(operation: OpInfo, trial: Trial) -> None:
    arguments = operation.sample_basic(trial)
    outcome = trial.call(arguments)
    for part, reference in enumerate(operation.exact(trial, arguments, use_exact_oracle=False)):
        observed = operation.parts(outcome, arguments)[part]
        dtype = operation.result_dtype(trial, arguments, part)
        has_form(trial, observed, reference.exact.shape, dtype, observed.expression.replace(outcome.name, "the result"))


def _equation(operation: OpInfo, trial: Trial) -> None:
    arguments = operation.sample(trial)
    agrees(trial, operation, arguments, trial.call(arguments), operation.exact(trial, arguments))


def _gradient(operation: OpInfo, trial: Trial) -> None:
    judge_with_gradients(trial, operation, operation.sample(trial), alone=True)


def _equation_of(operation: OpInfo) -> tuple[Check, ...]:
    """As many examples in all, whether they are of one format or of four."""
    return over([operation], "equation", _equation, effort=2 * len(dtypes.NAMES) / len(operation.dtypes))


CHECKS = (
    *over(JUDGED, "contract", _contract, effort=0.25),
    *(check for operation in JUDGED for check in _equation_of(operation)),
    *over(DIFFERENTIABLE, "gradient", _gradient, effort=2),
)
