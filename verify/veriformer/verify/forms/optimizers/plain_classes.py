"""Optimizers as plain classes that are built from parameters and a learning rate, and have ``step()``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Match, NotOffered, Readings
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.optimizer_names import (
    GRADIENT,
    PARAMS,
    arguments_of,
    defaults_of,
    forms_of,
    offers,
    operation_named,
    rename_options,
    scale_rate,
)
from veriformer.verify.forms.signatures import require_known


class Stepping:
    """An instance as the contract's optimizer: its state is what it holds, and gradients are cleared from outside."""

    def __init__(self, made: Any, params: Iterable[Tensor]) -> None:
        self.made, self.params = made, list(params)

    def step(self) -> None:
        """Take one step. One counter of steps may be for all parameters, so that all must have a gradient."""
        if any(p.grad is None for p in self.params):
            raise NotOffered("params: each is given a gradient, for steps may be counted for all together")
        with torch.no_grad():
            self.made.step()

    def zero_grad(self) -> None:
        """Clear all gradients."""
        for p in self.params:
            p.grad = None

    def state_dict(self) -> dict[str, Any]:
        """Return copies of what the instance holds, beside its parameters."""
        return {"params": self.params, "held": copy.deepcopy(vars(self.made), {id(p): p for p in self.params})}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what another instance held, with the parameters of this one in the place of its own."""
        own = {id(old): new for old, new in zip(state["params"], self.params, strict=True)}
        vars(self.made).update(copy.deepcopy(state["held"], own))


def _match(candidate: Candidate, operation: str) -> Match | None:
    if not candidate.is_class or issubclass(candidate.thing, nn.Module | torch.optim.Optimizer):
        return None
    if operation_named(candidate, candidate.constructor) != operation or not hasattr(candidate.thing, "step"):
        return None
    if not set(PARAMS["params"]) & candidate.constructor.keys():
        return None
    require_known(candidate.parameters_of("step"), ())
    if not arguments_of(candidate.constructor, operation, PARAMS):
        return None
    told = ("each parameter is given a gradient; the suite clears these, and saves what it holds",)
    return Match(True, {"gradient": GRADIENT} if operation == "sgd_momentum" else {}, told)


def _bind(candidate: Candidate, readings: Readings, operation: str) -> Callable[..., Any]:
    found = arguments_of(candidate.constructor, operation, PARAMS)
    shown = defaults_of(candidate.constructor, found, operation)

    def call(params: Iterable[Tensor], lr: float, **given: Any) -> Stepping:
        if not isinstance(lr, float | int):
            raise NotOffered("lr: expected a number")
        own, options = list(params), {found["lr"]: scale_rate(lr, given, readings), **rename_options(found, given)}
        return Stepping(candidate.make(**{found["params"]: own}, **options), own)

    return as_operation(operation, call, offers(found, operation), defaults=shown)


FORMS = forms_of(
    "plain",
    "a class that is no torch.optim.Optimizer, built from parameters and a learning rate, with step()",
    _match,
    _bind,
)
