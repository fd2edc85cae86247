"""Learning rates as objects that are built from sizes and called with the step, or have a method for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from torch import nn, optim

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.flattened import flatten_class
from veriformer.verify.forms.floors import FIXED, rate_of_all
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.functions.schedule import NEEDED, STEP, WORDS, find_roles, names_schedule
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.signatures import require_known

_METHODS = ("__call__", "learning_rate", "get_lr", "get_rate", "lr", "rate", "lr_at", "schedule", "get_learning_rate")


def _find_step(one: Candidate) -> str:
    """Return the name of the step among what a method takes; empty where there is none."""
    return next((name for name in STEP if name in one.parameters), "")


def _function(candidate: Candidate) -> Candidate | None:
    """Return the class as a function of all that it is built from and of what gives the rate; None for others."""
    if not candidate.is_class or issubclass(candidate.thing, nn.Module | optim.Optimizer):
        return None
    methods = (name for name in _METHODS if set(STEP) & candidate.parameters_of(name).keys())
    return flatten_class(candidate, methods)


def _match(candidate: Candidate, operation: str) -> Match | None:
    one = _function(candidate)
    found = find_roles(one.parameters) if one is not None else {}
    if one is None or not set(candidate.words) & WORDS or not set(NEEDED[operation]) <= found.keys():
        return None
    if found.keys() - set(NEEDED[operation]) - FIXED.keys():
        return None
    require_known(one.parameters, [_find_step(one), *found.values()])
    return Match(names_schedule(candidate, operation))


def _bind(candidate: Candidate, readings: Readings, operation: str) -> Callable[..., Any]:
    one = _function(candidate) or candidate
    found, step = find_roles(one.parameters), _find_step(one)

    def call(**given: Any) -> Any:
        if operation == "warmup_cosine" and given["warmup_steps"] >= given["total_steps"]:
            raise NotOffered("warmup_steps: no step is left to decay in, and the share of it is 0 / 0")
        return rate_of_all(answer, given, found)

    def answer(given: Mapping[str, Any]) -> Any:
        return one.thing(**{found[role]: x for role, x in given.items() if role in found}, **{step: given["step"]})

    return as_operation(operation, call)


FORMS = tuple(
    Form(
        name=f"functions/{operation}_of_object",
        operation=operation,
        says="an object built from its sizes, called with the step",
        conventions=() if operation == "noam" else ("warmup.first_step",),
        match=partial(_match, operation=operation),
        bind=partial(_bind, operation=operation),
    )
    for operation in NEEDED
)
