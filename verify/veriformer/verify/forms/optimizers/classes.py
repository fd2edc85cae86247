"""Subclasses of ``torch.optim.Optimizer``, recognised by name and constructor."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Match, NotOffered, Readings, Unfit
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


def _is_optimizer(candidate: Candidate) -> bool:
    return candidate.is_class and issubclass(candidate.thing, torch.optim.Optimizer)


def _match(candidate: Candidate, operation: str) -> Match | None:
    named = operation_named(candidate, candidate.constructor) if _is_optimizer(candidate) else None
    decoupled = (named, operation) == ("adam", "adamw")  # Adam by name, which may take the decay out of the moments
    if named != operation and not decoupled:
        return None
    found = arguments_of(candidate.constructor, operation, PARAMS)
    if not found:
        raise Unfit("its constructor takes no parameters and learning rate by names that are known")
    if operation != "sgd_momentum":
        return None if decoupled and "weight_decay" not in found else Match(not decoupled)
    if "dampening" in found:
        return Match(True, told=("dampening is given as the momentum, so that a gradient counts 1 − β",))
    return Match(True, {"gradient": GRADIENT})


def _bind(candidate: Candidate, readings: Readings, operation: str) -> Callable[..., Any]:
    found = arguments_of(candidate.constructor, operation, PARAMS)
    shown = defaults_of(candidate.constructor, found, operation)

    def call(params: Iterable[Tensor], lr: float, **given: Any) -> Any:
        options = rename_options(found, given)
        rate = scale_rate(lr, given, readings)
        if "dampening" in found:
            options[found["dampening"]] = given["beta"]
        if not isinstance(rate, float | int):
            raise NotOffered("lr: expected a number")
        return _given_closures(candidate.thing)(**{found["params"]: params, found["lr"]: rate}, **options)

    return as_operation(operation, call, offers(found, operation), defaults=shown)


@cache
def _given_closures(kind: Any) -> Any:
    """Return a class whose every second step is given a closure that changes nothing, where its steps take one."""
    if "closure" not in inspect.signature(kind.step).parameters:
        return kind

    def step(self: Any, closure: Callable[[], Any] | None = None) -> Any:
        self.steps_taken = getattr(self, "steps_taken", 0) + 1
        if closure is None and self.steps_taken % 2:
            return kind.step(self)
        return kind.step(self, closure or (lambda: torch.zeros(())))

    return type(kind.__name__, (kind,), {"step": step, "__module__": kind.__module__, "__doc__": kind.__doc__})


FORMS = forms_of(
    "class", "a subclass of torch.optim.Optimizer, by name and by what its constructor takes", _match, _bind
)
