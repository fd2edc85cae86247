"""Any other optimizer, a class or an instance: by its name none of those whose formula the contract has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Fit, Form, Match, Readings, Unfit
from veriformer.verify.forms.meanings import Parameters
from veriformer.verify.forms.optimizer_names import operation_named
from veriformer.verify.forms.trainer_calls import factory_of, find_stepping


def _match(candidate: Candidate) -> Match | None:
    kind, parameters, fixed = _built_from(candidate)
    if kind is None:
        return None
    if not fixed and operation_named(candidate, parameters):
        return None  # it is judged by its formula
    if kind is torch.optim.Optimizer:
        raise Unfit("it is the base of all optimizers")
    factory_of(kind, parameters, fixed)
    return Match(True)


def _built_from(candidate: Candidate) -> tuple[Any, Parameters, Mapping[str, Any]]:
    """Return the class, what its constructor takes, and the options by which an instance was built."""
    thing = candidate.thing
    if candidate.is_class and issubclass(thing, torch.optim.Optimizer):
        return thing, candidate.constructor, {}
    if isinstance(thing, torch.optim.Optimizer):
        taken = Candidate(candidate.name, type(thing), candidate.module).constructor
        return type(thing), taken, {name: value for name, value in thing.defaults.items() if name in taken}
    return None, {}, {}


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Any]:
    made: Callable[..., Any] = factory_of(*_built_from(candidate))
    return made


def _judge(function: Callable[..., Any]) -> Fit:
    """Judge whether it can be built and stepped: all that can be judged without a formula."""
    found = find_stepping(function, torch.float32)
    if isinstance(found, str):
        return Fit(1, 0, 0, False, 0.0, 0.0, error=found, raised=1)
    return Fit(1, 1, 1, True, 1.0, 1.0)


FORM = Form(
    name="optimizers/other_class",
    operation="optimizer",
    says="any other subclass of torch.optim.Optimizer, or an instance of one, judged by laws",
    closed=True,
    match=_match,
    bind=_bind,
    judge=_judge,
)
