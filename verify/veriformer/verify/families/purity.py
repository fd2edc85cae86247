"""Purity and layout: arguments stay unchanged, and memory layouts do not matter."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np

from veriformer.verify.families.judged import JUDGED
from veriformer.verify.judging.arguments import fresh
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.agreement import agrees, gradients_agree
from veriformer.verify.laws.family import over
from veriformer.verify.laws.gradients import draw_cotangent, judge_with_gradients
from veriformer.verify.laws.layouts import laid_out
from veriformer.verify.laws.untouched import assert_arguments_unmodified, assert_unmodified


def _purity(operation: OpInfo, trial: Trial) -> None:
    arguments = operation.sample(trial)
    references = operation.exact(trial, arguments, use_exact_oracle=False)
    wrt: tuple[str, ...] = ()
    cotangent = given = None
    if trial.draw(st.booleans()) and operation.vjps:
        wrt = operation.differentiable(arguments)
        cotangent = draw_cotangent(trial, references[0].exact.shape)
        given = fresh(cotangent, False)
    copies = {key: fresh(value, key in wrt) for key, value in arguments.items()}
    first = trial.raw(arguments, copies, wrt=wrt, cotangent=cotangent, given=given, again=True)
    assert_arguments_unmodified(trial, first, arguments, copies)
    if cotangent is not None and given is not None:
        assert_unmodified(trial, "cotangent", "cotangent", cotangent, given)
    agrees(trial, operation, arguments, first, references)
    agrees(trial, operation, arguments, trial.raw(arguments, copies), references)
    if cotangent is not None and (references[0].exact.ndim or np.isfinite(references[0].bound)):
        gradients_agree(trial, first, operation.exact_gradients(trial, arguments, cotangent, use_exact_oracle=False))


def _layout(operation: OpInfo, trial: Trial) -> None:
    arguments = laid_out(trial, operation)
    if operation.vjps:
        judge_with_gradients(trial, operation, arguments)
    else:
        agrees(
            trial,
            operation,
            arguments,
            trial.call(arguments),
            operation.exact(trial, arguments, use_exact_oracle=False),
        )


CHECKS = (
    *over(JUDGED, "purity", _purity, effort=0.5),
    *over(JUDGED, "layout", _layout, effort=1.5),
)
