"""Optimizer that steps one parameter at a time by a function of its gradient and its state."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

Update = Callable[..., None]
"""Changes a parameter in place: ``update(parameter, gradient, state, **options)``, and its dict of state."""


class Stepper:
    """Parameters, a dict of state for each, options, and an update of one parameter by its gradient."""

    def __init__(self, update: Update, params: Sequence[Tensor], **options: Any) -> None:
        self.update = update
        self.params = list(params)
        self.options = options
        self.states: list[dict[str, Any]] = [{} for _ in self.params]

    @torch.no_grad()
    def step(self) -> None:
        """Update every parameter that has a gradient."""
        for p, state in zip(self.params, self.states, strict=True):
            if p.grad is not None:
                self.update(p, p.grad, state, **self.options)

    def zero_grad(self) -> None:
        """Leave no gradient."""
        for p in self.params:
            p.grad = None

    def state_dict(self) -> dict[str, Any]:
        """Return states and options."""
        return {"states": self.states, "options": self.options}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.states, self.options = copy.deepcopy(saved["states"]), dict(saved["options"])


def stepping(update: Update, made: type[Stepper] = Stepper) -> Callable[..., Stepper]:
    """Return the kernel of an optimizer whose parameters are updated like this."""
    return lambda params, lr, **options: made(update, params, lr=lr, **options)
