"""Purity and layout: arguments are left alone, and where they lie in memory does not matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.checks.agreement import agrees, gradients_agree
from veriformer.verify.checks.equation import JUDGED, draw_cotangent, judge_with_gradients
from veriformer.verify.checks.family import over
from veriformer.verify.operation import Operation
from veriformer.verify.script import literal
from veriformer.verify.strategies import layouts
from veriformer.verify.trial import Arguments, Outcome, Trial, fresh


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
    _left_alone(trial, first, arguments, copies)
    if cotangent is not None and given is not None:
        _unchanged(trial, "cotangent", "cotangent", cotangent, given)
    agrees(trial, operation, arguments, first, references)
    agrees(trial, operation, arguments, trial.raw(arguments, copies), references)
    if cotangent is not None and (references[0].exact.ndim or np.isfinite(references[0].bound)):
        gradients_agree(trial, first, operation.exact_gradients(trial, arguments, cotangent, sharp=False))


def called_purely(trial: Trial, arguments: Arguments) -> None:
    """Raise Violation if a call modifies a tensor among its arguments, whatever it gives."""
    copies = {key: fresh(value, False) for key, value in arguments.items()}
    _left_alone(trial, trial.raw(arguments, copies), arguments, copies)


def _left_alone(trial: Trial, outcome: Outcome, arguments: Arguments, copies: Mapping[str, Any]) -> None:
    call = outcome.name.removeprefix("r")
    for (key, item), (before, after) in _tensors(arguments, copies).items():
        _unchanged(trial, f"{key}{item}", f"{key}{call}{item}", before, after)


def _tensors(before: Arguments, after: Mapping[str, Any]) -> dict[tuple[str, str], tuple[torch.Tensor, torch.Tensor]]:
    """Every tensor among the arguments, by its argument and its place in a list, before and after the call."""
    pairs = {}
    for key, value in before.items():
        if isinstance(value, torch.Tensor):
            pairs[key, ""] = (value, after[key])
        elif isinstance(value, list):
            pairs |= {(key, f"_{i}"): (item, after[key][i]) for i, item in enumerate(value)}
    return pairs


def _unchanged(trial: Trial, what: str, name: str, before: torch.Tensor, after: torch.Tensor) -> None:
    same = before.shape == after.shape and torch.equal(before, after.detach())
    trial.require(same, f"{what} was modified", f"torch.equal({name}, {literal(before)})")


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
