"""Calls with their gradients: a drawn cotangent and drawn leaves, result and gradients judged."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees, gradients_agree
from veriformer.verify.strategies import layouts, values


def judge_with_gradients(trial: Trial, operation: OpInfo, arguments: Arguments, *, alone: bool = False) -> None:
    """Judge the result and the gradients of one call, for a cotangent and a choice of leaves that are drawn here.

    alone: the check is about gradients alone; they are held against the exact oracle, and one of them must be able to
    tell right from wrong.
    """
    references = operation.exact(trial, arguments, use_exact_oracle=False)
    cotangent = draw_cotangent(trial, references[0].exact.shape)
    outcome = trial.call(arguments, wrt=draw_wrt(trial, operation, arguments), cotangent=cotangent)
    agrees(trial, operation, arguments, outcome, references)
    if references[0].exact.ndim == 0 and not np.isfinite(references[0].bound):
        return  # a result that may overflow has no gradient to judge
    if alone:
        trial.effective.clear()
    gradients_agree(trial, outcome, operation.exact_gradients(trial, arguments, cotangent, use_exact_oracle=alone))


def draw_cotangent(trial: Trial, shape: tuple[int, ...], *, expanded: bool = True) -> torch.Tensor:
    """Draw a cotangent, seldom uniform, under any strides; ``expanded=False`` excludes stride 0."""
    g = trial.tensor(trial.draw(values()).array(*(shape or (1,))))
    return trial.draw(layouts(expanded=expanded)).of(g if shape else g[0])


def draw_wrt(trial: Trial, operation: OpInfo, arguments: Arguments) -> tuple[str, ...]:
    """Draw the arguments that ask for a gradient: most often all differentiable ones, sometimes only some."""
    names = operation.differentiable(arguments)
    if len(names) == 1 or trial.draw(st.booleans()):
        return names
    return tuple(name for name in names if trial.draw(st.booleans())) or names[-1:]
