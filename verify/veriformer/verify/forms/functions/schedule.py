"""Learning rates as ``get_lr(it)``, whose sizes are arguments or constants of its module."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.offering import offered
from veriformer.verify.forms.signatures import demanded
from veriformer.verify.forms.size_names import size_of

_STEP = ("it", "step", "t", "iter", "iteration", "current_step", "step_num", "global_step", "iter_num", "steps")
ROLES = {
    "max_lr": ("learning_rate", "max_lr", "lr", "base_lr", "peak_lr", "lr_max", "initial_lr", "max_learning_rate"),
    "warmup_steps": (
        "warmup_iters",
        "warmup_steps",
        "num_warmup_steps",
        "warmup",
        "n_warmup_steps",
        "warmup_iterations",
    ),
    "total_steps": (
        *("lr_decay_iters", "max_steps", "total_steps", "num_training_steps", "max_iters", "max_iterations"),
        *("cosine_cycle_iters", "cos_cycle_iters", "total_iters", "decay_steps", "lr_decay_steps", "num_steps"),
        *("first_cycle_steps", "cycle_steps", "T_max"),
    ),
    "lowest": ("min_lr", "lr_min", "final_lr", "eta_min", "min_learning_rate"),
    "d_model": ("d_model", "model_size", "dim", "n_embd"),
    "factor": ("factor", "lr_mul", "scale_factor"),
}


def role_of(name: str) -> str:
    """The role of an argument by its name, or by the words of it; empty where it has none."""
    by_name = next((role for role, names in ROLES.items() if name in names), "")
    if by_name:
        return by_name
    if size_of(name) == "width":
        return "d_model"
    return "warmup_steps" if {"warm", "warmup"} & set(words(name)) else ""


FIXED = {"lowest": 0.0, "factor": 1.0}
"""What the contract has not, by the value that leaves it out."""
_WORDS = {"lr", "rate", "schedule", "cosine", "warmup", "noam", "scheduler"}
NEEDED = {
    "warmup_cosine": ("max_lr", "warmup_steps", "total_steps"),
    "warmup": ("max_lr", "warmup_steps"),
    "noam": ("d_model", "warmup_steps"),
}
"""By operation, the arguments without which it is none."""


def _parts(candidate: Candidate) -> tuple[str, dict[str, str]]:
    """The name of the step, and by role the name of a parameter, or of a constant that the function reads."""
    names = candidate.parameters
    code = getattr(candidate.thing, "__code__", None)
    read = set(code.co_names) if code is not None else set()
    step = next((name for name in _STEP if name in names), "")
    found = {}
    for role, known in ROLES.items():
        taken = next((name for name in known if name in names or name in read), None)
        if taken is not None:
            found[role] = taken
    return step, found


def _match(candidate: Candidate, operation: str) -> Match | None:
    if not inspect.isfunction(candidate.thing) or not _WORDS & set(candidate.words):
        return None
    step, found = _parts(candidate)
    needed = set(NEEDED[operation])
    if not step or not needed <= found.keys() or found.keys() - needed - FIXED.keys():
        return None
    demanded(candidate.parameters, [step, *found.values()])
    reads = getattr(candidate.thing, "__code__", None)
    return Match(operation == "warmup_cosine" and reads is not None and "cos" in reads.co_names)


def _bind(candidate: Candidate, readings: Readings, operation: str) -> Callable[..., Any]:
    step, found = _parts(candidate)
    parameters = candidate.parameters

    def call(**given: Any) -> Any:
        if operation == "warmup_cosine" and given["warmup_steps"] >= given["total_steps"]:
            raise NotOffered("warmup_steps: no step is left to decay in, and the share of it is 0 / 0")
        values = {found[role]: (FIXED | given)[role] for role in found}
        own = {name: value for name, value in values.items() if name in parameters}
        with _set(candidate.thing, {name: value for name, value in values.items() if name not in own}):
            return candidate.thing(**{step: given["step"]}, **own)

    return offered(operation, call)


@contextmanager
def _set(function: Any, constants: dict[str, Any]) -> Iterator[None]:
    """Let the function read these constants of its module, which are put back afterwards."""
    module = function.__globals__
    before = {name: module[name] for name in constants if name in module}
    module.update(constants)
    try:
        yield
    finally:
        for name in constants:
            del module[name]
        module.update(before)


FORMS = tuple(
    Form(
        name=f"functions/{operation}_of_step",
        operation=operation,
        says="get_lr(it), with its sizes as arguments or as constants of its module",
        conventions=() if operation == "noam" else ("warmup.first_step",),
        match=partial(_match, operation=operation),
        bind=partial(_bind, operation=operation),
    )
    for operation in NEEDED
)
