"""Learning rates as objects that are built from sizes and called with the step, or have a method for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn, optim

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.functions.schedule import FIXED, NAMES, NEEDED, STEP, WORDS, find_roles
from veriformer.verify.forms.offering import offered
from veriformer.verify.forms.signatures import demanded

_METHODS = ("__call__", "learning_rate", "get_lr", "get_rate", "lr", "rate", "lr_at", "schedule", "get_learning_rate")


def _find_method(candidate: Candidate) -> tuple[str, str]:
    """Return the method that gives the rate, and the name of its step; empty where there is none."""
    for method in _METHODS:
        found = candidate.parameters_of(method)
        step = next((name for name in STEP if name in found), "")
        if step:
            demanded(found, [step])
            return method, step
    return "", ""


def _match(candidate: Candidate, operation: str) -> Match | None:
    if not candidate.is_class or issubclass(candidate.thing, nn.Module | optim.Optimizer):
        return None
    found = find_roles(candidate.constructor)
    if not set(candidate.words) & WORDS or not set(NEEDED[operation]) <= found.keys():
        return None
    if found.keys() - set(NEEDED[operation]) - FIXED.keys() or not _find_method(candidate)[0]:
        return None
    demanded(candidate.constructor, found.values())
    return Match(NAMES[operation] <= set(candidate.words))


def _bind(candidate: Candidate, readings: Readings, operation: str) -> Callable[..., Any]:
    found, (method, name) = find_roles(candidate.constructor), _find_method(candidate)

    def call(**given: Any) -> Any:
        if operation == "warmup_cosine" and given["warmup_steps"] >= given["total_steps"]:
            raise NotOffered("warmup_steps: no step is left to decay in, and the share of it is 0 / 0")
        values = {found[role]: x for role, x in (FIXED | given).items() if role in found}
        return getattr(candidate.make(**values), method)(**{name: given["step"]})

    return offered(operation, call)


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
