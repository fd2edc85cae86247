"""A normal form for sums of any length, Σ_{i=1}^n, so that identities are proved for all n at once.

Sums are linear, a factor that does not depend on the index leaves the sum, Σ_i δ_ij f(i) is f(j), and the names and
the order of summation indices mean nothing. Free indices are taken to lie within the range of every sum they meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, groupby, permutations, product
from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp


def tidy(e: Any) -> Any:
    """Bring every sum inside the expression into normal form, innermost first."""
    if isinstance(e, sp.Sum):
        own = _renamed(e)
        body = tidy(own.function)
        for limits in own.limits:
            body = _sum(body, limits)
        return body
    return e.func(*map(tidy, e.args)) if e.has(sp.Sum) else e


def _sum(body: Any, limits: tuple[Any, Any, Any]) -> Any:
    i, first, last = limits
    shift, base = last.as_coeff_Add()
    if shift.is_Integer and shift > 0 and base != 0:
        beyond = sum(body.subs(i, base + k) for k in range(1, int(shift) + 1))
        return _sum(body, (i, first, base)) + beyond
    body = _decided(body, i, first, last)
    total = sp.S.Zero
    for term in sp.Add.make_args(_expanded(body)):
        outside, inside = term.as_independent(i, as_Add=False)
        total += outside * _monomial(inside, i, first, last)
    return total


def _expanded(body: Any) -> Any:
    """Expand products. SymPy makes products of exponentials of sums, which are taken back."""
    e = sp.expand(body)
    return e.xreplace({p: sp.exp(sp.Sum(p.function.exp, *p.limits)) for p in e.atoms(sp.Product)})


def _decided(body: Any, i: Any, first: Any, last: Any) -> Any:
    """Decide the comparisons in the body that have one value over the whole range of i."""
    from veriformer.spec.arithmetic.indicators import AtLeastZero

    rest = sp.Dummy("u", integer=True, nonnegative=True)
    for comparison in (c for c in body.atoms(AtLeastZero) if c.has(i)):
        for end in (first + rest, last - rest):
            value = comparison.func(sp.expand(comparison.args[0].subs(i, end)))
            body = body.xreplace({comparison: value}) if value.is_Integer else body
    return body


def _monomial(term: Any, i: Any, first: Any, last: Any) -> Any:
    if term == 1:
        return last - first + 1
    for delta in term.atoms(sp.KroneckerDelta):
        if i in delta.args and sp.Mul.make_args(term).count(delta):
            j = delta.args[1] if delta.args[0] == i else delta.args[0]
            return (term / delta).subs(i, j)
    if term.is_polynomial(i) and not term.atoms(sp.Indexed, sp.Function, sp.Sum):
        return sp.summation(term, (i, first, last))
    limits: tuple[Any, ...] = ((i, first, last),)
    for factor in sp.Mul.make_args(term):
        # Sums over other indices become one sum with this one, a power of a sum as many as it stands for.
        base, exponent = factor.as_base_exp()
        if isinstance(base, sp.Sum) and exponent.is_Integer and exponent > 0:
            own = [_renamed(base) for _ in range(int(exponent))]
            term = term / factor * sp.Mul(*(s.function for s in own))
            limits = (*(limit for s in own for limit in s.limits), *limits)
    return _ordered(term, limits)


def _renamed(nested: Any) -> Any:
    """Return the sum with fresh indices, which no sum beside it or inside a function has."""
    own = {k: sp.Dummy(integer=True, positive=k.is_positive) for k, _, _ in nested.limits}
    return sp.Sum(
        nested.function.xreplace(own), *((own[k], a.xreplace(own), b.xreplace(own)) for k, a, b in nested.limits)
    )


def _ordered(term: Any, limits: tuple[Any, ...]) -> Any:
    """Name the indices by their place, in the order that sorts first: sums over fixed ranges may be exchanged."""
    indices = {i for i, _, _ in limits}
    free_ranges = not any(indices & (a.free_symbols | b.free_symbols) for _, a, b in limits)
    start = _depth(term, indices)
    names = [sp.Symbol(f"_{start + k}", integer=True) for k in range(len(limits))]
    candidates = []
    for order in _orders(limits) if free_ranges else [limits]:
        new = dict(zip([i for i, _, _ in order], names, strict=True))
        bounds = [(new[i], a.xreplace(new), b.xreplace(new)) for i, a, b in order]
        candidates.append(sp.Sum(term.xreplace(new), *bounds))
    return min(candidates, key=sp.default_sort_key)


def _orders(limits: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the orders in which ranges are sorted: only indices of one range can change places."""
    ranges = groupby(sorted(limits, key=_range), key=_range)
    alike = [list(permutations(group)) for _, group in ranges]
    return (tuple(chain(*chosen)) for chosen in product(*alike))


def _range(limit: tuple[Any, Any, Any]) -> Any:
    return [sp.default_sort_key(end) for end in limit[1:]]


def _depth(term: Any, own: set[Any]) -> int:
    taken = [int(s.name[1:]) for s in term.atoms(sp.Symbol) - own if s.name.startswith("_")]
    return 1 + max(taken, default=0)
