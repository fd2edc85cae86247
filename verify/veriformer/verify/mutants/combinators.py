"""The one language in which wrong implementations are written: a fault takes a right operation and returns a wrong one.

Mutants, the tables of faults that tests need, and sabotage are made of these. Where the fault lies inside the
computation, ``edited`` puts the formula with another text in its place, and ``replace_by`` a computation of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from veriformer.spec.edits import Edit
from veriformer.verify.formulas.base import FormulaKernel
from veriformer.verify.formulas.kernels import kernel
from veriformer.verify.targets.argument_validation import RawOp, with_checks, with_validation
from veriformer.verify.targets.impl import reference

Operation = Callable[..., Any]
Fault = Callable[[Operation], Operation]


def change_result(change: Callable[[Tensor], Tensor]) -> Fault:
    """Return the fault that changes the result; in a list with a norm, every tensor of the list."""

    def fault(op: Operation) -> Operation:
        def broken(*args: Any, **options: Any) -> Any:
            result = op(*args, **options)
            return change(result) if isinstance(result, Tensor) else ([change(x) for x in result[0]], result[1])

        return broken

    return fault


def change_arguments(change: Callable[..., Any]) -> Fault:
    """Return the fault that changes the arguments: ``change(*args, **options)`` returns both."""

    def fault(op: Operation) -> Operation:
        def broken(*args: Any, **options: Any) -> Any:
            args, options = change(*args, **options)
            return op(*args, **options)

        return broken

    return fault


def instead(broken: Operation) -> Fault:
    """Return the fault that runs ``broken(op, *args, **options)`` instead of the operation."""
    return lambda op: functools.partial(broken, op)


def change_any_result(change: Callable[[Any], Any]) -> Fault:
    """Return the fault that changes the whole result, of any type."""
    return instead(lambda op, *args, **options: change(op(*args, **options)))


class WithGradient(torch.autograd.Function):
    """``apply(x, change)``: the identity, with a changed gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
        """Return x."""
        ctx.change = change
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        """Return the changed gradient."""
        return ctx.change(g), None


def with_gradient(x: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Return x, with a changed gradient."""
    moved: Tensor = WithGradient.apply(x, change)  # type: ignore[no-untyped-call]
    return moved


def gradient_of(place: int, change: Callable[[Tensor], Tensor]) -> Fault:
    """Return the fault that changes the gradient of one positional argument."""

    def fault(op: Operation) -> Operation:
        def broken(*args: Any, **options: Any) -> Any:
            moved = [with_gradient(x, change) if i == place and x is not None else x for i, x in enumerate(args)]
            return op(*moved, **options)

        return broken

    return fault


def without(name: str) -> Fault:
    """Ignore an option that is given."""
    return change_arguments(lambda *args, **options: (args, {k: v for k, v in options.items() if k != name}))


def instead_of(name: str, value: Any) -> Fault:
    """Fix an option to this value."""
    return change_arguments(lambda *args, **options: (args, {**options, name: value}))


def by_name(change: Callable[..., dict[str, Any]]) -> Fault:
    """Change attention's arguments: ``change`` gets all of them by name, and returns the changed ones."""

    def fault(op: Operation) -> Operation:
        def broken(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Any:
            a = {"q": q, "k": k, "v": v, **options}
            a |= change(**a)
            return op(a.pop("q"), a.pop("k"), a.pop("v"), **a)

        return broken

    return fault


@dataclass(frozen=True)
class Replaced:
    """See ``replace_by``."""

    kernel: RawOp

    def __call__(self, op: Operation) -> Operation:
        """Return the kernel behind the argument checks of the operation."""
        name: str = getattr(op, "func", op).__name__
        operation: Operation = getattr(with_validation(**{name: self.kernel}), name)
        return operation


def replace_by(kernel: RawOp) -> Fault:
    """Replace the computation, behind the contract's argument checks, as ``with_validation`` takes it."""
    return Replaced(kernel)


def edited(operation: str, *edits: Edit, **settings: Any) -> Fault:
    """Return the fault that computes the operation by its formula with these edits; settings: see ``kernel``."""
    return replace_by(kernel(operation, *edits, **settings))


def faulty(name: str, fault: Fault) -> Operation:
    """Return our operation of that name with a fault, its argument checks and defaults as the contract's."""
    right = getattr(reference, name)
    return fault(right) if isinstance(fault, Replaced) else with_checks(name, right, fault(right))


def both(one: Fault, two: Fault) -> Fault | None:
    """Combine two faults; None for two computations that would replace each other.

    Faults by edits of formulas combine their edits; others are nested.
    """
    if not isinstance(two, Replaced):
        return lambda op: two(one(op))
    if not isinstance(one, Replaced):
        return lambda op: one(two(op))
    for mine, other in ((one.kernel, two.kernel), (two.kernel, one.kernel)):
        if isinstance(other, FormulaKernel) and hasattr(mine, "joined") and (joined := mine.joined(other)) is not None:
            return Replaced(joined)
    return None
