"""Optimizer steps as functions of a parameter, its gradient and its averages, which are returned."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Match, NotOffered, Readings
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.optimizer_names import (
    GRADIENT,
    arguments_of,
    defaults_of,
    forms_of,
    offers,
    operation_named,
    rename_options,
    scale_rate,
)

_STATE = {
    "param": ("param", "p", "theta", "w", "weight", "weights", "x", "parameter"),
    "grad": ("grad", "g", "gradient", "dw", "dx", "grads"),
}
_M = ("m", "exp_avg", "first_moment", "velocity", "v", "momentum_buffer", "mt", "buf")
_V = ("v", "exp_avg_sq", "second_moment", "vt", "s")
_T = ("t", "step", "timestep", "iteration", "step_num")
_HELD: Mapping[str, dict[str, tuple[str, ...]]] = {
    "gradient_descent": {},
    "sgd_momentum": {"m": _M},
    "adam": {"m": _M, "v": _V, "t": _T},
    "adamw": {"m": _M, "v": _V, "t": _T},
}

GIVES = ("parameter first", "parameter last", "nothing: in place")
"""Order of the results: the parameter and then its averages, or the averages first."""


def _match(candidate: Candidate, operation: str) -> Match | None:
    if not inspect.isfunction(candidate.thing) or operation_named(candidate, candidate.parameters) != operation:
        return None
    if not arguments_of(candidate.parameters, operation, {**_STATE, **_HELD[operation]}):
        return None
    velocity = {"gradient": GRADIENT} if operation == "sgd_momentum" else {}
    return Match(True, {**velocity, "gives": GIVES})


class Stepper:
    """An optimizer that keeps what the function gives back. A parameter without gradient is not stepped."""

    def __init__(
        self, step: Callable[..., Any], params: Iterable[Tensor], held: Collection[str], options: Mapping[str, Any]
    ) -> None:
        self.one_step, self.params, self.held, self.options = step, list(params), held, dict(options)
        self.states: dict[int, dict[str, Any]] = {}

    @torch.no_grad()
    def step(self) -> None:
        """Update every parameter that has a gradient."""
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            state = self.states.setdefault(i, {role: torch.zeros_like(p) for role in self.held if role != "t"})
            if "t" in self.held:
                state["t"] = state.get("t", 0) + 1
            self.one_step(p, p.grad, state, self.options)

    def zero_grad(self) -> None:
        """Clear all gradients."""
        for p in self.params:
            p.grad = None

    def state_dict(self) -> dict[str, Any]:
        """Return copies of every parameter's averages, and the options."""
        return copy.deepcopy({"states": self.states, "options": self.options})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from saved averages by saved options."""
        saved = copy.deepcopy(state)
        self.states, self.options = saved["states"], saved["options"]


def _bind(candidate: Candidate, readings: Readings, operation: str) -> Callable[..., Any]:
    held = _HELD[operation]
    found = arguments_of(candidate.parameters, operation, {**_STATE, **held})
    shown = defaults_of(candidate.parameters, found, operation)

    def call(params: Iterable[Tensor], lr: float, **given: Any) -> Stepper:
        options = {found["lr"]: scale_rate(lr, given, readings), **rename_options(found, given)}

        def one_step(p: Tensor, grad: Tensor, state: dict[str, Any], options: Mapping[str, Any]) -> None:
            arguments = {found["param"]: p, found["grad"]: grad, **{found[role]: state[role] for role in held}}
            result = candidate.thing(**arguments, **options)
            _keep(result, p, state, readings["gives"])

        return Stepper(one_step, params, held, options)

    return as_operation(operation, call, offers(found, operation), defaults=shown)


def _keep(result: Any, p: Tensor, state: dict[str, Any], gives: str) -> None:
    """Put the parameter and its averages where the next step finds them."""
    averages = [role for role in ("m", "v") if role in state]
    if gives == GIVES[2]:
        if result is not None:
            raise NotOffered("it gives something back")
        return
    parts = [x for x in (result if isinstance(result, tuple | list) else (result,)) if isinstance(x, Tensor)]
    if len(parts) != 1 + len(averages):
        raise NotOffered(f"expected {1 + len(averages)} tensors back, got {len(parts)}")
    names = ["param", *averages] if gives == GIVES[0] else [*averages, "param"]
    new = dict(zip(names, parts, strict=True))
    p.copy_(new.pop("param"))
    state.update(new)


FORMS = forms_of(
    "step", "a function of a parameter, its gradient, its averages and the step, by name", _match, _bind, ("gives",)
)
