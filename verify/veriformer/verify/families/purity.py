"""Purity and layout: arguments are left alone, and where they lie in memory does not matter."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.families.judged import JUDGED
from veriformer.verify.judging.operation import Operation
from veriformer.verify.judging.trial import Arguments, Trial, fresh
from veriformer.verify.laws.agreement import agrees, gradients_agree
from veriformer.verify.laws.family import over
from veriformer.verify.laws.gradients import draw_cotangent, judge_with_gradients
from veriformer.verify.laws.untouched import left_alone, unchanged
from veriformer.verify.strategies import layouts


def _purity(operation: Operation, trial: Trial) -> None:
    arguments = operation.draw(trial)
    references = operation.exact(trial, arguments, sharp=False)
    wrt: tuple[str, ...] = ()
    cotangent = given = None
    if trial.draw(st.booleans()) and operation.vjps:
        wrt = operation.differentiable(arguments)
        cotangent = draw_cotangent(trial, references[0].exact.shape)
        given = fresh(cotangent, False)
    copies = {key: fresh(value, key in wrt) for key, value in arguments.items()}
    first = trial.raw(arguments, copies, wrt=wrt, cotangent=cotangent, given=given, again=True)
    left_alone(trial, first, arguments, copies)
    if cotangent is not None and given is not None:
        unchanged(trial, "cotangent", "cotangent", cotangent, given)
    agrees(trial, operation, arguments, first, references)
    agrees(trial, operation, arguments, trial.raw(arguments, copies), references)
    if cotangent is not None and (references[0].exact.ndim or np.isfinite(references[0].bound)):
        gradients_agree(trial, first, operation.exact_gradients(trial, arguments, cotangent, sharp=False))


def _layout(operation: Operation, trial: Trial) -> None:
    drawn = operation.draw(trial)
    arguments = {key: _laid_out(trial, operation, drawn, key) for key in drawn}
    if operation.vjps:
        judge_with_gradients(trial, operation, arguments)
    else:
        agrees(trial, operation, arguments, trial.call(arguments), operation.exact(trial, arguments, sharp=False))


def _laid_out(trial: Trial, operation: Operation, arguments: Arguments, key: str) -> Any:
    """One argument under another layout; what must keep its values (masks, ids, rows that may not be constant) does."""
    value = arguments[key]
    if isinstance(value, list):
        return [trial.draw(layouts()).of(item) for item in value]
    if not isinstance(value, torch.Tensor):
        return value
    free = key in operation.inputs and key != "bias" and arguments.get("eps") != 0.0
    free = free and not (key in operation.ranking and trial.claims.deviates("choice.ties"))
    return trial.draw(layouts(expanded=free and bool(value.isfinite().all()))).of(value)


CHECKS = (
    *over(JUDGED, "purity", _purity, effort=0.5),
    *over(JUDGED, "layout", _layout, effort=1.5),
)
