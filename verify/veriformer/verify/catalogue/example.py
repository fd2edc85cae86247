"""Judgement of one example of a check: an error of this suite over the target's results is no verdict on them."""

from __future__ import annotations

import contextlib

from hypothesis.errors import HypothesisException, UnsatisfiedAssumption

from veriformer.verify.judging.check import Check
from veriformer.verify.judging.judge import Undefined, Violation
from veriformer.verify.judging.outcome import NoGradient
from veriformer.verify.judging.trial import NOT_OFFERED, Trial
from veriformer.verify.laws.agreement import check_parts
from veriformer.verify.operations.registry import OPERATIONS

_RECORDS = {operation.name: operation for operation in OPERATIONS}


def judge(check: Check, trial: Trial) -> None:
    """Judge one example. Raises Violation where the target is wrong.

    Where the formula has no value because of the target's own constants, as a norm without epsilon over zeros, the
    example is given up. What a check makes of a result of another form than promised may be an error of any kind: then
    the form is what is judged.
    """
    try:
        with contextlib.suppress(NoGradient):
            check.property_test(trial)
    except (Violation, UnsatisfiedAssumption, HypothesisException):
        raise
    except Undefined:
        if not trial.constants:
            raise
        said = ", ".join(f"{name} = {value}" for name, value in trial.constants.items())
        trial.unsupported.add(f"{NOT_OFFERED}calls of which the formula has no value with {said}")
        trial.assume(False)
    except Exception:
        _judge_forms(trial)
        raise


def _judge_forms(trial: Trial) -> None:
    """Raise Violation unless every result so far has the form that was promised."""
    for call, outcome in trial.outcomes:
        operation = _RECORDS.get(call.operation)
        if operation is not None and operation.formulas:
            references = operation.exact(trial, call.arguments, use_exact_oracle=False)
            list(check_parts(trial, operation, call.arguments, outcome, references))
