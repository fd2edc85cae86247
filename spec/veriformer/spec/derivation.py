"""Parts of a derivation beside its records: the definitions behind a step, one worked example, and the literature."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from types import FunctionType
from typing import Any

import numpy as np

from veriformer.spec.equation import Equation, Step
from veriformer.spec.formula_reach import MATHEMATICS_IN, names

_TOOLS = ("veriformer.spec.proofs", "veriformer.spec.arithmetic", "veriformer.spec.equation")
_DRAWS = 50
_SHOWN = 6


def starts_from(step: Step) -> tuple[tuple[str, str], ...]:
    """Return the definitions that a step's identities use, as (name, docstring): read from the step's own code.

    A function without a docstring only shortens the code of the step, and is none.
    """
    if not isinstance(step.identity, FunctionType):
        return ()
    found = {name: step.identity.__globals__.get(name) for name in names(step.identity.__code__)}
    return tuple((name, _summary(f)) for name, f in found.items() if _is_mathematics(f) and f.__doc__)


def _is_mathematics(f: Any) -> bool:
    home = getattr(f, "__module__", "") if isinstance(f, FunctionType) else ""
    return home.startswith(MATHEMATICS_IN) and not home.startswith(_TOOLS)


def _summary(f: Any) -> str:
    paragraph = (f.__doc__ or "").strip().partition("\n\n")[0]
    return " ".join(paragraph.split())


def example(equation: Equation) -> tuple[dict[str, str], str] | None:
    """Return arguments, rounded for calculation by hand, and the formula's value in fp64.

    Of 50 draws the one with the fewest numbers; None where an equation has no formula or no arguments to draw.
    """
    from veriformer.spec.arithmetic import Float

    if equation.formula is None or equation.sample is None:
        return None
    xp, rng = Float(), np.random.default_rng(0)
    draws = [{name: _rounded(x) for name, x in equation.sample(rng).items()} for _ in range(_DRAWS)]
    usable = [a for a in draws if all(x.holds(a) for x in equation.assumptions)]
    if not usable:
        return None
    chosen = min(usable, key=lambda a: (abs(_numbers(a) - _SHOWN), str(a)))
    value = equation.formula(xp, **{name: _taken(xp, x) for name, x in chosen.items()})
    return {name: _written(x) for name, x in chosen.items()}, _written(value)


def _numbers(x: Any) -> int:
    parts = x.values() if isinstance(x, dict) else x if isinstance(x, tuple | list) else None
    return sum(map(_numbers, parts)) if parts is not None else int(np.size(x))


def _rounded(x: Any) -> Any:
    return _each(x, lambda array: np.round(array, 1))


def _taken(xp: Any, x: Any) -> Any:
    return _each(x, xp.asarray)


def _each(x: Any, change: Callable[[Any], Any]) -> Any:
    """Arrays of numbers changed, in whatever they are kept."""
    if isinstance(x, dict):
        return {name: _each(part, change) for name, part in x.items()}
    if isinstance(x, tuple | list):
        parts = [_each(part, change) for part in x]
        return x._make(parts) if hasattr(x, "_make") else type(x)(parts)
    return change(x) if isinstance(x, np.ndarray) and x.dtype == np.float64 else x


def _written(x: Any) -> str:
    if isinstance(x, dict):
        return ", ".join(f"{name} = {_written(part)}" for name, part in x.items())
    if isinstance(x, tuple | list):
        return f"({', '.join(map(_written, x))})"
    if x is None or isinstance(x, str | bool | int) or callable(x):
        return getattr(x, "__name__", str(x))
    array = np.asarray(getattr(x, "value", x))
    if array.dtype == object:
        array = array.astype(np.float64)
    return " ".join(np.array2string(array, precision=4, separator=", ", threshold=24, suppress_small=True).split())


def literature(equation: Equation) -> Iterator[str]:
    """Papers besides the documents that have the equation."""
    return (paper for slugs, paper in _papers() if equation.slug in slugs)


@cache
def _papers() -> tuple[tuple[frozenset[str], str], ...]:
    text = files("veriformer.spec.sources").joinpath("literature.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines()[1:]]
    return tuple((frozenset(slugs.split()), paper) for slugs, paper in rows)
