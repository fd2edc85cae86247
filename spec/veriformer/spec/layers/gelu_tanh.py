"""GELU by a hyperbolic tangent (document 003, section 11)."""

from __future__ import annotations

import math
from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import elementwise
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, step
from veriformer.spec.layers.gelu import FINITE, X, any_length, cumulative, gelu, gelu_vjp, sample
from veriformer.spec.proofs.indexed import real
from veriformer.spec.proofs.published import rounds_to
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step


def _inner(x: Any) -> Any:
    return sp.sqrt(2 / sp.pi) * (x + sp.Rational(44715, 1000000) * x**3)


_any_vjp = vjp_step(
    lambda: pullbacks(gelu, gelu_vjp, {"x": "n"}, approximate="tanh"),
    claim="The vector-Jacobian product is the derivative of this form, for any number of entries.",
)


@step()
def _formula() -> Identities:
    """The formula is the statement, for every x, and for any number of them."""
    x, y = any_length("tanh")
    yield y, sp.Rational(1, 2) * x * (1 + sp.tanh(_inner(x)))


@step()
def _as_sigmoid() -> Identities:
    r"""$(1 + \tanh u) / 2 = 1 / (1 + e^{-2u})$: this form is x times a sigmoid, a SiLU of bent input."""
    u = real("u")
    yield (1 + sp.tanh(u).rewrite(sp.exp)) / 2, 1 / (1 + sp.exp(-2 * u))


@step()
def _series() -> Identities:
    r"""With c for 0.044715, the two gates agree at 0 in value and slope, and in their third derivatives for $c =
    \frac{4 - \pi}{6 \pi} \approx 0.0455$: the printed c is close to that of the Taylor series, but gives up a little
    there.
    """
    x, c = real("x c")
    bent = sp.tanh(sp.sqrt(2 / sp.pi) * (x + c * x**3))
    curve = sp.erf(x / sp.sqrt(2))
    yield sp.diff(bent, x).subs(x, 0), sp.diff(curve, x).subs(x, 0)
    third = sp.diff(bent, x, 3).subs(x, 0) - sp.diff(curve, x, 3).subs(x, 0)
    yield third, 6 * sp.sqrt(2 / sp.pi) * (c - (4 - sp.pi) / (6 * sp.pi))


@step()
def _even() -> Identities:
    """The error of the approximation is even: equal for x and -x."""
    x = real("x")
    miss = x * cumulative(x) - x / 2 * (1 + sp.tanh(_inner(x)).rewrite(sp.exp))
    yield miss.subs(x, -x), miss


def _miss(x: float, cubic: float) -> float:
    inner = math.sqrt(2 / math.pi) * (x + cubic * x**3)
    return abs(x / 2 * (math.erf(x / math.sqrt(2)) - math.tanh(inner)))


@step(scope=Scope.NUMERIC, detail="every 1/1024 of 0 ≤ x < 8; beyond both are x or 0 to 14 digits")
def _largest_error() -> Identities:
    """The approximation is nowhere further from GELU than 0.000473, which it reaches at |x| = 2.70; with the c of the
    Taylor series it would be 0.000746.
    """
    grid = [k / 1024 for k in range(8 * 1024)]
    for cubic, error, place in (
        (0.044715, "0.000473", "2.70"),
        ((4 - math.pi) / (6 * math.pi), "0.000746", "2.47"),
    ):
        largest, worst = max((_miss(x, cubic), x) for x in grid)
        yield rounds_to(sp.Float(worst), place)
        yield rounds_to(sp.Float(largest), error)


EQUATIONS = (
    Equation(
        slug="gelu-tanh",
        number=None,
        title="GELU by a hyperbolic tangent",
        statement=r"\text{GELU}(x) \approx 0.5x\left(1 + \tanh\left(\sqrt{\frac{2}{\pi}}(x + 0.044715x^3)"
        r"\right)\right)",
        sources=(Source("003", "11, Mathematical Formulation", 1275),),
        symbols=(X,),
        assumptions=(
            FINITE,
            Assumption("the form with tanh is asked for", lambda a: a["approximate"] == "tanh"),
        ),
        sample=lambda rng: {**sample(rng), "approximate": "tanh"},
        formula=gelu,
        vjp=gelu_vjp,
        steps=(_formula, _series, _even, _largest_error, _as_sigmoid, _any_vjp),
        costs=elementwise(9),
    ),
)
