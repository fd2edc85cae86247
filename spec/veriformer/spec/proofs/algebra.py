"""Deciding that an expression is zero.

The normal form is that of rational functions: exponentials, logarithms, roots, sums and any other function become
generators of their own (e^{a+b} = e^a e^b, log(ab) = log a + log b for positive a, b, and R² = b for R = √b), the
fraction is put over one denominator, and what is left of the numerator must vanish as a polynomial.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.proofs.sums import tidy


def is_identically_zero(e: Any) -> bool:
    """Return whether the expression is identically zero; False means that it was not found to be."""
    return all(_rational_zero(case) for case in _cases(tidy(sp.sympify(e))))


def _cases(e: Any) -> list[Any]:
    """Split on every Kronecker delta of free indices, or of a letter and a number: they are equal, or they are not."""
    bound = {limit[0] for s in e.atoms(sp.Sum) for limit in s.limits}
    free = [d for d in e.atoms(sp.KroneckerDelta) if _splits(*d.args) and not bound & d.free_symbols]
    if not free:
        return [e]
    i, j = min(free, key=sp.default_sort_key).args
    equal = tidy(e.subs(j, i) if i.is_Number else e.subs(i, j))
    return _cases(equal) + _cases(tidy(e.subs(sp.KroneckerDelta(i, j), 0)))


def _splits(i: Any, j: Any) -> bool:
    return bool(j.is_Symbol or (i.is_Number and isinstance(j, sp.Indexed))) and bool(i.is_Symbol or i.is_Number)


def _rational_zero(e: Any) -> bool:
    if e == 0:
        return True
    field = _Field(e)
    return field.is_zero(field.lower(e))


class _Field:
    """The field of rational functions in which one expression lives."""

    def __init__(self, e: Any) -> None:
        self._generators: dict[tuple[str, Any], Any] = {}
        self._roots: dict[Any, Any] = {}
        self._denominators: dict[Any, int] = {}
        for exponential in e.atoms(sp.exp):
            for term in sp.Add.make_args(sp.expand(exponential.args[0])):
                q, rest = term.as_coeff_Mul()
                if q.is_Rational:
                    self._denominators[rest] = sp.ilcm(self._denominators.get(rest, 1), q.q)

    def lower(self, e: Any) -> Any:
        """Replace every part that is not rational by its generator."""
        if e.is_Rational or e.is_Symbol:
            return e
        if e.is_Add or e.is_Mul:
            return e.func(*map(self.lower, e.args))
        if isinstance(e, sp.exp):
            return self._exponential(e.args[0])
        if isinstance(e, sp.log):
            return self._logarithm(e.args[0])
        if e.is_Pow:
            return self._power(e.base, e.exp)
        if isinstance(e, (sp.Min, sp.Max)):
            return self._extreme(e)
        alike = e.func(*map(sp.expand, e.args)) if isinstance(e, sp.Function) else e
        return self._generator("atom", alike, e)

    def is_zero(self, e: Any) -> bool:
        """Return whether a lowered expression is zero: its numerator, reduced by R² = b, has no coefficient left."""
        numerator = sp.expand(sp.fraction(sp.together(e))[0])
        for root, base in reversed(self._roots.items()):
            if numerator.has(root):
                return all(self.is_zero(part) for part in _even_and_odd(numerator, root, base))
        return bool(numerator == 0)

    def _generator(self, kind: str, key: Any, like: Any) -> Any:
        name = f"{kind}{len(self._generators)}"
        symbol = sp.Dummy(name, positive=True) if like.is_positive else sp.Dummy(name, real=like.is_real)
        return self._generators.setdefault((kind, key), symbol)

    def _exponential(self, argument: Any) -> Any:
        product = sp.S.One
        for term in sp.Add.make_args(sp.expand(argument)):
            q, rest = term.as_coeff_Mul()
            if isinstance(rest, sp.log):
                product *= self._power(rest.args[0], q)
                continue
            scale = self._denominators.get(rest, 1)
            product *= self._generator("exp", (rest, scale), sp.exp(rest)) ** (q * scale)
        return product

    def _logarithm(self, argument: Any) -> Any:
        numerator, denominator = sp.fraction(sp.together(self.lower(argument)))
        factors = [(f, k * sign) for side, sign in ((numerator, 1), (denominator, -1)) for f, k in _factors(side)]
        if not all(f.is_positive for f, _ in factors):
            return self._generator("log", sp.factor(numerator / denominator), sp.log(argument))
        exponents = {
            g: rest / scale for (kind, key), g in self._generators.items() if kind == "exp" for rest, scale in [key]
        }
        total = sp.S.Zero
        for f, k in factors:
            total += k * (self.lower(exponents[f]) if f in exponents else self._generator("log", f, sp.S.ImaginaryUnit))
        return total

    def _power(self, base: Any, exponent: Any) -> Any:
        if exponent.is_Integer:
            return self.lower(base) ** exponent
        if base.is_Rational and exponent.is_Rational:
            return base**exponent
        if exponent.is_Rational and exponent.q == 2:
            return reduce(sp.Mul, map(self._root, sp.Mul.make_args(_root_of(self.lower(base)))), 1) ** exponent.p
        return self._exponential(sp.expand(exponent * sp.log(base)))

    def _extreme(self, e: Any) -> Any:
        """Return the least (or the largest) argument where the signs of all differences to it are known."""
        sign = 1 if isinstance(e, sp.Min) else -1
        arguments = [sp.factor(sp.together(self.lower(a))) for a in e.args]
        for a in arguments:
            if all(sp.factor(sp.together(sign * (b - a))).is_nonnegative for b in arguments):
                return a
        return self._generator("extreme", e.func(*arguments), e)

    def _root(self, e: Any) -> Any:
        if not (e.is_Pow and e.exp.is_Rational and not e.exp.is_Integer and not e.base.is_Rational):
            return e
        symbol = self._generator("root", e.base, sp.sqrt(e.base))
        self._roots.setdefault(symbol, e.base)
        return symbol ** (2 * e.exp)


def _root_of(base: Any) -> Any:
    return sp.sqrt(sp.factor(sp.together(base)))


def _factors(e: Any) -> list[tuple[Any, int]]:
    content, factors = sp.factor_list(e)
    return [(content, 1), *factors] if content != 1 else list(factors)


def _even_and_odd(numerator: Any, root: Any, base: Any) -> tuple[Any, Any]:
    parts = [sp.S.Zero, sp.S.Zero]
    for (k,), coefficient in sp.Poly(numerator, root).terms():
        parts[k % 2] += coefficient * base ** (k // 2)
    return parts[0], parts[1]
