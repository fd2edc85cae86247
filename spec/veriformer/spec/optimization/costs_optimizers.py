"""Costs of a step of an optimizer, in the number P of parameters and the bytes w of each.

FLOPs count matrix products, of which there are none. Every elementwise operation of the formula counts as one; what
depends on the step alone, not on the parameter, is free. The state is what the optimizer keeps between steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import symbol

# Elementwise operations per parameter, arrays read or written (θ, g and the state), and arrays kept as state.
_STEPS = {
    "exponential_average": (3, 3, 1),
    "square_average": (4, 3, 1),
    "accumulation": (1, 3, 1),
    "gradient_descent": (2, 3, 0),
    "sgd_momentum": (5, 5, 1),
    "adam": (14, 7, 2),
    "adam_l2": (16, 7, 2),
    "adamw": (15, 7, 2),
}


def _step(optimizer: str) -> dict[str, Any]:
    p, w = symbol("P"), symbol("w")
    passes, arrays, kept = _STEPS[optimizer]
    return {
        "FLOPs": sp.S.Zero,
        "other operations": passes * p,
        "bytes": arrays * p * w,
        "bytes of state": kept * p * w,
    }


def optimizer_costs(optimizer: str) -> dict[str, Callable[[], Any]]:
    """The costs of a step over P parameters, or of one micro-batch that is added to a sum of P gradients.

    Each is worked out when it is asked for: records are made without SymPy.
    """
    names = ("FLOPs", "other operations", "bytes", "bytes of state")
    return {name: partial(lambda name: _step(optimizer)[name], name) for name in names}


def schedule_costs(operations: int) -> dict[str, Callable[[], Any]]:
    """A schedule is a number per step, however large the model is."""
    return {
        "other operations": lambda: sp.Integer(operations),
        "bytes of state": lambda: sp.S.Zero,
        "parameters": lambda: sp.S.Zero,
    }
