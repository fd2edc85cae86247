"""Vector-Jacobian products of any length against the derivatives of the formulas that they belong to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Identities, Step, step
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, vector
from veriformer.spec.proofs.provenance import computed


def pullbacks(
    formula: Callable[..., Any],
    vjp: Callable[..., Any],
    arguments: Mapping[str, Any],
    places: Mapping[Any, Any] | None = None,
    **options: Any,
) -> Identities:
    """Yield, for each array, the entries that `vjp` computes and those that SymPy derives from `formula`'s result.

    arguments: by name and in their order, the shape of an array of letters (names of lengths, "n d", or a tuple of
    sizes), or whatever else is no array. The vjp takes the same, and then the cotangent g. places: for a size of blocks
    that are put together, the index there.
    """
    xp = AnyLength()
    given = {name: tuple(map(dimension, x.split())) if isinstance(x, str) else x for name, x in arguments.items()}
    taken = [xp.array(name, *x) if isinstance(x, tuple) else x for name, x in given.items()]
    y = formula(xp, *taken, **options)
    found = computed(vjp, xp, *taken, xp.array("g", *y.shape), **options)
    for k, (name, shape) in enumerate((name, x) for name, x in given.items() if isinstance(x, tuple)):
        at = tuple((places or {}).get(n, sp.Symbol(f"k_{i}", integer=True)) for i, n in enumerate(shape, 1))
        yield found.then(partial(_entry_of, k, at, shape)), pulled_back(y, vector(name)[at])


def vjp_step(
    identity: Callable[[], Identities],
    name: str = "_any_vjp",
    claim: str = "The vector-Jacobian product is the derivative that SymPy takes of the formula, for all sizes.",
) -> Step:
    """Make the step `any-vjp` of a lambda that calls `pullbacks`: nothing of it is evaluated before the step is proved.

    name: of the variable that the step becomes, by which the proof cache and the sabotage tell its source.
    """
    identity.__name__ = identity.__qualname__ = name
    identity.__doc__ = claim
    return step("any-vjp")(identity)


def pulled_back(y: Any, letter: Any) -> Any:
    """Return Σ_i g_i ∂y_i / ∂letter over all entries of an array of any length, or g ∂y / ∂letter of a single number.

    The slope of max(x, 0) is written as max(x, 0) / x, which it is for x ≠ 0.
    """
    from veriformer.spec.arithmetic.indicators import summed

    at = [1 if n == 1 else sp.Dummy("i", integer=True) for n in y.shape]
    total = (vector("g")[tuple(at)] if at else sp.Symbol("g", real=True)) * entry(*at)(y)
    for i, n in zip(at, y.shape, strict=True):
        total = summed(total, i, n) if n != 1 else total
    slope = sp.diff(total, letter).replace(sp.Heaviside, lambda x, *_: sp.Max(x, 0) / x)
    return slope.replace(sp.KroneckerDelta, _of_places)


def _of_places(i: Any, j: Any) -> Any:
    """Return δ_ij, where two places in blocks of one width are equal if block and entry are."""
    from veriformer.spec.arithmetic.indicators import Place

    if isinstance(i, Place) and isinstance(j, Place) and i.args[2] == j.args[2]:
        return _of_places(i.args[0], j.args[0]) * _of_places(i.args[1], j.args[1])
    return sp.KroneckerDelta(i, j)


def _entry_of(k: int, at: tuple[Any, ...], shape: tuple[Any, ...], parts: Any) -> Any:
    """Return the entry of the k-th of several arrays, or of the only one, which must have this shape."""
    found = parts[k] if isinstance(parts, tuple) else parts
    if len(found.shape) != len(shape) or any(sp.expand(a - b) != 0 for a, b in zip(found.shape, shape, strict=True)):
        raise ValueError(f"vjp: expected the shape {shape} of the argument, got {found.shape}")
    return entry(*at)(found)
