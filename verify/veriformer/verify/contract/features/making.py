"""Constructors of features from names and conditions; a condition that does not apply is false."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from veriformer.spec.requirement import Weight
from veriformer.verify.contract.feature import Arguments, Feature

Condition = Callable[[Arguments], bool]
Named = tuple[str, Condition]
"""Name and condition of a feature, without its operation."""


def ordinary(operation: str, *named: Named) -> Iterator[Feature]:
    """Return features whose failure is plainly wrong; an implementation may refuse such calls."""
    return (Feature(name=name, operation=operation, present=met(present)) for name, present in named)


def fragile(operation: str, *named: Named, optional: bool = True) -> Iterator[Feature]:
    """Yield features of degenerate or extreme calls."""
    for name, present in named:
        yield Feature(name=name, operation=operation, present=met(present), weight=Weight.FRAGILE, optional=optional)


def leaking(operation: str, *named: Named) -> Iterator[Feature]:
    """Return features of hidden values, which may not influence a result."""
    return (Feature(name=name, operation=operation, present=met(p), weight=Weight.LEAK) for name, p in named)


def demanded(operation: str, *named: Named) -> Iterator[Feature]:
    """Return features of ordinary values; no implementation may refuse such calls."""
    return (Feature(name=name, operation=operation, present=met(p), optional=False) for name, p in named)


def met(condition: Condition) -> Condition:
    """Return the condition, false for a call that lacks the argument or has one of another kind."""

    def present(arguments: Arguments) -> bool:
        try:
            return bool(condition(arguments))
        except (KeyError, TypeError, AttributeError, IndexError, ValueError, ArithmeticError, RuntimeError):
            return False

    return present


def on(name: str, test: Callable[[Any], Any]) -> Condition:
    """Return a condition on one argument."""
    return lambda a: bool(test(a[name]))


def number(value: Any) -> bool:
    """Return whether the value is a number of Python or NumPy, bool excepted."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def article(name: str) -> str:
    """Return the name with its article."""
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
