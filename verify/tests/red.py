"""How a right operation is spoiled: what the tables of small faults are made of."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.targets.loading import load

GOOD = load("impl:reference").implementation
Operation = Callable[..., Any]
Fault = Callable[[Operation], Operation]


def changed(change: Callable[[Tensor], Tensor]) -> Fault:
    """The right result, changed; in a list with a norm, every tensor of the list."""

    def fault(op: Operation) -> Operation:
        def broken(*args: Any, **options: Any) -> Any:
            result = op(*args, **options)
            return change(result) if isinstance(result, Tensor) else ([change(x) for x in result[0]], result[1])

        return broken

    return fault


def given(change: Callable[..., Any]) -> Fault:
    """The right operation on changed arguments: ``change(*args, **options)`` returns both."""

    def fault(op: Operation) -> Operation:
        def broken(*args: Any, **options: Any) -> Any:
            args, options = change(*args, **options)
            return op(*args, **options)

        return broken

    return fault


def instead(broken: Operation) -> Fault:
    """Something else: it gets the right operation first, then the arguments."""
    return lambda op: functools.partial(broken, op)


def altered(change: Callable[[Any], Any]) -> Fault:
    """The whole result, changed, whatever it is."""
    return instead(lambda op, *args, **options: change(op(*args, **options)))


class WithGradient(torch.autograd.Function):
    """``apply(x, change)``: x itself, the gradient of which is changed."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.change = change
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return ctx.change(g), None


def gradient_of(place: int, change: Callable[[Tensor], Tensor]) -> Fault:
    """The right result; the gradient of one positional argument is changed."""

    def fault(op: Operation) -> Operation:
        def broken(*args: Any, **options: Any) -> Any:
            moved = [WithGradient.apply(x, change) if i == place else x for i, x in enumerate(args)]
            return op(*moved, **options)

        return broken

    return fault


def without(name: str) -> Fault:
    """An option that is taken and ignored."""
    return given(lambda *args, **options: (args, {k: v for k, v in options.items() if k != name}))


def instead_of(name: str, value: Any) -> Fault:
    """An option that always has this value."""
    return given(lambda *args, **options: (args, {**options, name: value}))


def mixed(x: Tensor) -> Tensor:
    """A little of everything in everything."""
    return x + 0.01 * x.sum()


def more(x: Tensor) -> Tensor:
    return x * 1.03125


def shifted(x: Tensor) -> Tensor:
    return x + 0.0625
