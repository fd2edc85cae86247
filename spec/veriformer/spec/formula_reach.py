"""Reach of the steps that run a formula: which of them hold it against something else, and for which sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

from veriformer.spec.document import Verdicts
from veriformer.spec.equation import Equation, Scope, Step
from veriformer.spec.proofs.provenance import named

MATHEMATICS_IN = "veriformer.spec."


def formula_reach(equation: Equation, verdicts: Verdicts) -> Scope | None:
    """Return the reach of the steps that run the equation's formula, or its pullback where the statement is a gradient.

    None where no step runs it.
    """
    formula = equation.vjp if equation.vjp and r"\partial" in equation.statement else equation.formula
    return reach_of(formula, (equation,), verdicts)


def reach_of(function: Any, equations: Iterable[Equation], verdicts: Verdicts) -> Scope | None:
    """Return the reach of the steps of these equations that run a function.

    For all n is only what computed one side of a proved identity on arrays of any length, and not the other side: that
    a step names the function says nothing. Single numbers are a small size, whatever the scope of the step.
    """
    scopes: set[Scope] = set()
    for slug, s in ((e.slug, s) for e in equations for s in e.steps):
        verdict = verdicts[slug, s.slug]
        if verdict.holds and s.scope is Scope.ALL and named(function) in verdict.at_letters:
            return Scope.ALL
        if verdict.holds and function in functions(s):
            scopes.add(Scope.NUMERIC if s.scope is Scope.NUMERIC else Scope.ENUMERATED)
    return next((scope for scope in Scope if scope in scopes), None)


def functions(step: Step) -> set[Any]:
    """Return the functions of this package that a step's code names, transitively.

    A class counts for all of its methods.
    """
    found: set[Any] = set()
    waiting: list[Any] = [step.identity]
    while waiting:
        f = waiting.pop()
        if isinstance(f, type) and f not in found and f.__module__.startswith(MATHEMATICS_IN):
            found.add(f)
            waiting += vars(f).values()
        if isinstance(f, FunctionType) and f not in found and f.__module__.startswith(MATHEMATICS_IN):
            found.add(f)
            waiting += [f.__globals__.get(name) for name in names(f.__code__)]
    return found


def names(code: CodeType) -> Iterator[str]:
    """Yield the names that a piece of code uses, nested functions included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names(constant)
