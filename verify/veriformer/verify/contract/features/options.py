"""Features of numbers and other options: given, left out, of another value than usual, of another kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from veriformer.spec.operations.call import Axis, Choice, Flag, Integer, Number, Probability
from veriformer.verify.contract.feature import Arguments, Feature
from veriformer.verify.contract.features.making import Condition, Named, article, fragile, number, on, ordinary
from veriformer.verify.contract.signatures import OPTIONAL, arguments


def of_options(operation: str) -> Iterator[Feature]:
    """Yield features of each optional argument: another value than the default, the default left out or given."""
    for name, default in OPTIONAL.get(operation, {}).items():
        argument = arguments(operation)[name]
        if isinstance(argument, Choice):
            yield from ordinary(operation, *((f"{name}={word!r}", _equal(name, word)) for word in argument.others))
        elif isinstance(argument, Flag):
            yield from ordinary(operation, (f"{name}={not default}", _equal(name, not default)))
        elif not isinstance(argument, Axis):
            yield from ordinary(operation, (article(name), _other(name, default)))
        if default is None:
            yield from ordinary(operation, (f"{name}=None", on(name, lambda x: x is None)))
        yield from ordinary(operation, (f"the default of {name}", _left_out(name, default)))


def of_numbers(operation: str) -> Iterator[Feature]:
    """Yield features of the values and kinds of numbers."""
    for name, argument in arguments(operation).items():
        if isinstance(argument, Number):
            certain = isinstance(argument, Probability)
            of_zero = ordinary if argument.default == 0 else fragile
            yield from of_zero(operation, (f"{article(name)} of 0", _equal(name, 0)))
            yield from fragile(operation, *_signs(name))
            of_one = fragile if certain else ordinary
            if certain:
                yield from fragile(operation, (f"{article(name)} within rounding of 0 or 1", _nearly_certain(name)))
            yield from of_one(operation, (f"{article(name)} of 1", _equal(name, 1)))
            yield from fragile(operation, (f"a NumPy number as {name}", on(name, lambda x: isinstance(x, np.generic))))
            if not isinstance(argument, Integer):
                yield from ordinary(operation, (f"an integer as {name}", on(name, _is_integer)))


def _signs(name: str) -> tuple[Named, ...]:
    return (
        (f"a negative {name}", lambda a: number(a[name]) and a[name] < 0),
        (f"an infinite {name}", lambda a: number(a[name]) and abs(a[name]) == np.inf),
    )


def _nearly_certain(name: str) -> Condition:
    """Return whether a probability, or 1 less it, is below the distance of numbers at 1 in the format of a call."""

    def present(a: Arguments) -> bool:
        p = a[name]
        if not number(p) or not 0 < p < 1:
            return False
        dtypes = [x.dtype for x in a.values() if isinstance(x, torch.Tensor) and x.is_floating_point()]
        return bool(min(p, 1 - p) < max((torch.finfo(dtype).eps for dtype in dtypes), default=0.0))

    return present


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _equal(name: str, value: Any) -> Condition:
    return lambda a: type(a[name]) is not bool and a[name] == value if number(value) else a[name] == value


def _other(name: str, default: Any) -> Condition:
    def present(a: Arguments) -> bool:
        value = a[name]
        return value is not None and not (type(value) is type(default) and value == default)

    return present


def _left_out(name: str, default: Any) -> Condition:
    def present(a: Arguments) -> bool:
        value = a.get(name, default)
        return value is None if default is None else type(value) is type(default) and value == default

    return present
