"""Faults by name, and parts that they share: a cache, an optimizer and a gradient that are changed."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.mutants.combinators import Fault, instead, with_gradient
from veriformer.verify.targets.impl import reference as right

Call = Callable[..., Any]
HALVES = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class NamedFault:
    """Wrong operation; wrong: its fault, in one line."""

    name: str
    operation: str
    wrong: str
    fault: Fault

    def target(self) -> SimpleNamespace:
        """All of the right implementation, but for this one operation."""
        broken = self.fault(getattr(right, self.operation))
        return SimpleNamespace(**{**vars(right), self.operation: broken, "__name__": f"power:{self.name}"})


FAULTS: dict[str, NamedFault] = {}


def fault(wrong: str) -> Callable[[Call], Call]:
    """Register a function named operation__what that gets the right operation first."""

    def register(function: Call) -> Call:
        operation = function.__name__.partition("__")[0]
        FAULTS[function.__name__] = NamedFault(function.__name__, operation, wrong, _where_it_can(instead(function)))
        return function

    return register


def _where_it_can(fault: Fault) -> Fault:
    """Apply a fault where it can be: refuse as before, and compute rightly where the fault raises."""

    def cautious(whole: Call) -> Call:
        wrong = fault(whole)

        @functools.wraps(whole)
        def broken(*args: Any, **options: Any) -> Any:
            try:
                return wrong(*args, **options)
            except Exception:
                return whole(*args, **options)

        return broken

    return cautious


def is_plain(o: dict[str, Any]) -> bool:
    return all(x is None or x is False or x == 0.0 for x in o.values())


def change_gradient(x: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    return with_gradient(x, lambda g: change(g.clone())) if x.requires_grad else x


def compute_scores(q: Tensor, k: Tensor) -> Tensor:
    k = k.repeat_interleave(q.shape[1] // max(k.shape[1], 1), 1)
    return q @ k.mT / math.sqrt(q.shape[-1])


def replace_rows(x: Tensor, start: int, other: Tensor) -> Tensor:
    """x with its last but one axis from start on taken from other."""
    return torch.cat((x[..., :start, :], other[..., start:, :]), -2)


def replace_columns(x: Tensor, start: int, other: Tensor) -> Tensor:
    return torch.cat((x[..., :start], other[..., start:]), -1)


class CacheWrapper:
    """A right cache, some calls of which are changed."""

    def __init__(self, *sizes: int, **options: Any) -> None:
        self.right = right.kv_cache(*sizes, **options)
        self.batch, self.heads, self.capacity, self.width = sizes
        self.options = options
        self.rows: list[Tensor] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.right, name)

    def update(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        shown: tuple[Tensor, Tensor] = self.right.update(k, v)
        return shown

    def reorder(self, index: Tensor) -> None:
        self.right.reorder(index)

    def reset(self) -> None:
        self.right.reset()


def change_steps(name: str, change: Callable[[Any, list[Tensor]], None]) -> Call:
    """A right optimizer; after each step, ``change`` gets it and its parameters as they were before."""

    def made(op: Call, params: Any, lr: float, **o: Any) -> Any:
        optimizer = op(params, lr, **o)
        step = optimizer.step

        @torch.no_grad()
        def stepped(*args: Any) -> Any:
            before = [p.detach().clone() for group in optimizer.param_groups for p in group["params"]]
            result = step(*args)
            change(optimizer, before)
            return result

        optimizer.step = stepped
        return optimizer

    made.__name__ = name
    return made


def list_parameters(optimizer: Any) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]
