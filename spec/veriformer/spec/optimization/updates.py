"""Optimizers as pure functions: from the states of several parameters, and their gradients, to new states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

S = TypeVar("S")


def each(xp: Any, update: Callable[[S, Any], S], states: Sequence[S], grads: Sequence[Any]) -> list[S]:
    """Update every parameter by its own gradient. Where that is None, the state stays, its step count included."""
    return [s if g is None else update(s, xp.asarray(g)) for s, g in zip(states, grads, strict=True)]


def zeros(xp: Any, like: Any) -> Any:
    """Exact zeros in the shape of `like`: where averages start."""
    return xp.asarray(np.zeros(like.shape))
