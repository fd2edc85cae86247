"""How features are made: names, conditions on arguments, and a condition that does not apply is not met."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from veriformer.spec.requirement import Weight
from veriformer.verify.contract.feature import Arguments, Feature

Condition = Callable[[Arguments], bool]
Named = tuple[str, Condition]
"""A feature before it is known of which operation: its name and its condition."""


def ordinary(operation: str, *named: Named) -> Iterator[Feature]:
    """Features whose failure is plainly wrong; an implementation may refuse such calls."""
    return (Feature(name=name, operation=operation, present=met(present)) for name, present in named)


def fragile(operation: str, *named: Named, optional: bool = True) -> Iterator[Feature]:
    """Features of degenerate or extreme calls."""
    for name, present in named:
        yield Feature(name=name, operation=operation, present=met(present), weight=Weight.FRAGILE, optional=optional)


def leaking(operation: str, *named: Named) -> Iterator[Feature]:
    """Features of what must not be seen."""
    return (Feature(name=name, operation=operation, present=met(p), weight=Weight.LEAK) for name, p in named)


def demanded(operation: str, *named: Named) -> Iterator[Feature]:
    """Features of ordinary values, which nobody may refuse."""
    return (Feature(name=name, operation=operation, present=met(p), optional=False) for name, p in named)


def met(condition: Condition) -> Condition:
    """The same condition, not met where the call has no such argument or one of another kind."""

    def present(arguments: Arguments) -> bool:
        try:
            return bool(condition(arguments))
        except (KeyError, TypeError, AttributeError, IndexError, ValueError, ArithmeticError, RuntimeError):
            return False

    return present


def on(name: str, test: Callable[[Any], Any]) -> Condition:
    """A condition on one argument."""
    return lambda a: bool(test(a[name]))


def number(value: Any) -> bool:
    """Whether this is a number of Python or NumPy."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def article(name: str) -> str:
    """The name with its article."""
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
