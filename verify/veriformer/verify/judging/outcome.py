"""Outcome of a call of the target, and the expressions that reproduce it in a script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from veriformer.verify.judging.judge import Violation


class NoGradient(Exception):
    """Claimed absence of gradients: the example ends here, and earlier judgements stand."""


@dataclass(frozen=True)
class Observation:
    """Tensor from the target, and the Python expression that reproduces it in a script."""

    value: torch.Tensor
    expression: str
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """Outcome of a call of the target: its result and the requested gradients."""

    name: str
    value: Any
    gradients: Mapping[str, torch.Tensor] = field(default_factory=dict)

    @property
    def result(self) -> Observation:
        """Observation of the result. Raises Violation where it is not a dense tensor."""
        return _dense(self.value, self.name, "the result")

    def item(self, *path: int) -> Observation:
        """Return one tensor inside a result that is a tuple or a list: ``item(0, 2)`` is ``result[0][2]``."""
        expression = self.name + "".join(f"[{i}]" for i in path)
        value = self.value
        for i in path:
            if not isinstance(value, list | tuple) or i >= len(value):
                raise Violation(
                    f"the result has no element {expression}", lines=[f"{expression}", "raise SystemExit(0)"]
                )
            value = value[i]
        return _dense(value, expression, expression.replace(self.name, "the result", 1))

    def gradient(self, argument: str) -> Observation:
        """Return the gradient of one argument as an observation. Raises NoGradient where the target claims none."""
        if not self.gradients:
            raise NoGradient
        return Observation(self.gradients[argument], f"{self.name}_grad_{argument}")


def _dense(value: Any, expression: str, what: str) -> Observation:
    """Return a value as an observation. Raises Violation unless it is a dense tensor."""
    if not isinstance(value, torch.Tensor):
        line = f'raise SystemExit(0 if isinstance({expression}, torch.Tensor) else "not a tensor")'
        raise Violation(f"{what} is a {type(value).__name__}, not a tensor", lines=[line])
    if value.layout is not torch.strided or value.is_quantized or value.is_nested:
        is_dense = f"{expression}.layout is torch.strided and not ({expression}.is_quantized or {expression}.is_nested)"
        line = f'raise SystemExit(0 if {is_dense} else "not a dense tensor")'
        kind = "quantised" if value.is_quantized else "nested" if value.is_nested else "sparse"
        raise Violation(f"{what} is a {kind} tensor, not a dense one", lines=[line])
    return Observation(value, expression)
