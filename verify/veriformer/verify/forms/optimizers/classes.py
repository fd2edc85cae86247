"""Subclasses of ``torch.optim.Optimizer`` whose name and constructor say which optimizer they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings, Unfit
from veriformer.verify.forms.offering import offered
from veriformer.verify.forms.optimizer_names import (
    CONVENTIONS,
    GRADIENT,
    OPTIONS,
    PARAMS,
    arguments_of,
    defaults_of,
    given_as,
    offers,
    operation_named,
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
        options = given_as(found, given)
        rate = scale_rate(lr, given, readings)
        if "dampening" in found:
            options[found["dampening"]] = given["beta"]
        if not isinstance(rate, float | int):
            raise NotOffered("lr: expected a number")
        return candidate.thing(**{found["params"]: params, found["lr"]: rate}, **options)

    return offered(operation, call, offers(found, operation), defaults=shown)


FORMS = tuple(
    Form(
        name=f"optimizers/{operation}_class",
        operation=operation,
        says="a subclass of torch.optim.Optimizer, by name and by what its constructor takes",
        conventions=CONVENTIONS.get(operation, ("adam.eps",)),
        closed=True,
        match=partial(_match, operation=operation),
        bind=partial(_bind, operation=operation),
    )
    for operation in OPTIONS
)
