"""GELU: a number times the chance that a normal variable is below it (equation 37)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.constants import pi
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import elementwise
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, index, real, vector
from veriformer.spec.proofs.provenance import Computed, computed
from veriformer.spec.proofs.published import rounds_to
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step

_CUBIC = Fraction(44715, 1000000)


def gelu(xp: Any, x: Any, *, approximate: str = "none") -> Any:
    """x Φ(x) = x/2 (1 + erf(x/√2)) (37), or with `approximate="tanh"` x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))."""
    return x * _gate(xp, x, approximate) / 2


def gelu_vjp(xp: Any, x: Any, g: Any, *, approximate: str = "none") -> Any:
    """dx = g ⊙ gelu'(x)."""
    return g * gelu_slope(xp, x, approximate=approximate)


def gelu_slope(xp: Any, x: Any, *, approximate: str = "none") -> Any:
    """Φ(x) + x φ(x) with φ the normal density, or with `approximate="tanh"` the slope of that form."""
    gate = _gate(xp, x, approximate)
    if approximate == "none":
        return gate / 2 + x * xp.exp(x * x * Fraction(-1, 2)) / xp.sqrt(pi(xp) * 2)
    t = gate - 1
    return gate / 2 + x * (1 - t * t) * xp.sqrt(2 / pi(xp)) * (1 + x * x * (3 * _CUBIC)) / 2


def _gate(xp: Any, x: Any, approximate: str) -> Any:
    """2 Φ(x), or what stands for it."""
    if approximate == "none":
        return 1 + xp.erf(x / xp.sqrt(xp.asarray(2)))
    return 1 + xp.tanh(xp.sqrt(2 / pi(xp)) * (x + x * x * x * _CUBIC))


def _normal(x: Any) -> Any:
    """φ(x)."""
    return sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)


def cumulative(x: Any) -> Any:
    """Φ(x)."""
    return (1 + sp.erf(x / sp.sqrt(2))) / 2


@step()
def _erf_form() -> Identities:
    r"""$\Phi(x) = \int_{-\infty}^x \varphi(t) \, dt = \frac{1}{2}(1 + \text{erf}(x / \sqrt{2}))$."""
    x, t = real("x t")
    yield computed(sp.integrate, _normal(t), (t, -sp.oo, x)).then(lambda e: e.rewrite(sp.erf)), cumulative(x)


@step()
def _between() -> Identities:
    r"""$\Phi$ rises, as $\Phi' = \varphi > 0$, from 0 over $\Phi(0) = \frac{1}{2}$: GELU is a share of its input
    between none and all of it, and far below zero nothing is left.
    """
    x = real("x")
    yield sp.diff(cumulative(x), x), _normal(x)
    yield computed(sp.limit, cumulative(x), x, -sp.oo), 0
    yield computed(sp.limit, cumulative(x), x, sp.oo), 1
    yield computed(cumulative, sp.S.Zero), sp.Rational(1, 2)
    yield computed(sp.limit, x * cumulative(x), x, -sp.oo), 0


@step()
def _derivative() -> Identities:
    r"""$\text{GELU}'(x) = \Phi(x) + x \varphi(x)$."""
    x = real("x")
    yield computed(sp.diff, x * cumulative(x), x), cumulative(x) + x * _normal(x)


@step()
def _curvature() -> Identities:
    r"""$\text{GELU}''(x) = (2 - x^2) \varphi(x)$, defined everywhere, where ReLU has a corner: its slope bends one way
    up to $|x| = \sqrt{2}$, and is largest there.
    """
    x = real("x")
    yield sp.diff(x * cumulative(x), x, 2), (2 - x**2) * _normal(x)


@step()
def _symmetry() -> Identities:
    r"""$\text{GELU}(x) - \text{GELU}(-x) = x$, as for ReLU: what a negative number keeps, its opposite loses."""
    x = real("x")
    yield x * cumulative(x) - (-x) * cumulative(-x), x


@step()
def _expectation() -> Identities:
    """GELU is the mean of a switch that passes x where a normal variable is below x, and else 0: what dropout of inputs
    by their value would give on average.
    """
    # A switch that passes x where a normal variable is below it, and 0 where it is above.
    x, t = real("x t")
    passed = sp.integrate(x * _normal(t), (t, -sp.oo, x)) + sp.integrate(0 * _normal(t), (t, x, sp.oo))
    xp = Symbolic()
    yield passed.rewrite(sp.erf), computed(gelu, xp, xp.asarray(x))


def _lowest() -> tuple[float, float]:
    """Where the slope vanishes, by bisection, and the value there."""
    low, high = -1.0, -0.5
    for _ in range(50):
        middle = (low + high) / 2
        slope = math.erfc(-middle / math.sqrt(2)) / 2 + middle * math.exp(-(middle**2) / 2) / math.sqrt(2 * math.pi)
        low, high = (middle, high) if slope < 0 else (low, middle)
    return low, low * math.erfc(-low / math.sqrt(2)) / 2


@step(scope=Scope.NUMERIC, detail="the zero of the slope by bisection")
def _minimum() -> Identities:
    """GELU is not monotone: below zero it falls to -0.1700 at x = -0.7518 and rises to 0 from there."""
    x, y = _lowest()
    yield rounds_to(sp.Float(-x), "0.7518")
    yield rounds_to(sp.Float(-y), "0.1700")


def any_length(approximate: str) -> tuple[Any, Computed]:
    """Return an entry of an argument of any length, and the formula's result there."""
    xp, i = AnyLength(), index("i")
    y = computed(gelu, xp, xp.array("x", dimension("n")), approximate=approximate)
    return vector("x")[i], y.then(entry(i))


@step()
def _formula() -> Identities:
    """The formula is the statement, for every x, and for any number of them."""
    x, y = any_length("none")
    yield y, x * cumulative(x)


_any_vjp = vjp_step(
    lambda: pullbacks(gelu, gelu_vjp, {"x": "n"}),
    claim="The vector-Jacobian product is the formula's derivative, for any number of entries.",
)


@erratum(
    kind="wrong",
    source=Source("002", "7.2", 941),
    printed=r"\text{inputs closer to the mean of a normal distribution are more likely to survive}",
    corrected=r"\text{larger inputs are: } x \text{ survives with chance } \Phi(x) \text{, which rises}",
)
def _nearness_is_not_survival() -> Evidence:
    near, far = (round(math.erfc(-x / math.sqrt(2)) / 2, 3) for x in (0, 2))
    return Evidence(
        "inputs 0, the mean, and 2: which is kept more often, with chance 0.5 or 0.977",
        near,
        max(near, far),
        letters={"x": 1, "Phi": lambda x: (1 + math.erf(x / math.sqrt(2))) / 2},
        values=(math.erfc(-1 / math.sqrt(2)) / 2,),
    )


def sample(rng: np.random.Generator) -> dict[str, Any]:
    """Arguments of the formula."""
    return {"x": rng.normal(size=(2, 3)) * 2}


X = Symbol("x", r"\mathbb{R}", "the pre-activation")
FINITE = Assumption("the pre-activations are numbers", lambda a: bool(np.isfinite(a["x"]).all()))

EQUATIONS = (
    Equation(
        slug="gelu",
        number="37",
        title="GELU",
        statement=r"\text{GELU}(x) = x \cdot \Phi(x) = x \cdot \frac{1}{2}\left[1 + \text{erf}\left(\frac{x}{\sqrt{2}}"
        r"\right)\right]",
        sources=(Source("002", "7.2", 933), Source("003", "11, Mathematical Formulation", 1263)),
        symbols=(
            X,
            Symbol(r"\Phi", r"\mathbb{R} \to (0, 1)", "the standard normal distribution function"),
            Symbol(r"\varphi", r"\mathbb{R} \to \mathbb{R}_{> 0}", "the standard normal density"),
        ),
        assumptions=(FINITE,),
        sample=sample,
        formula=gelu,
        vjp=gelu_vjp,
        steps=(
            _erf_form,
            _between,
            _expectation,
            _derivative,
            _curvature,
            _symmetry,
            _minimum,
            _formula,
            _any_vjp,
        ),
        costs=elementwise(5),
        errata=(_nearness_is_not_survival,),
    ),
)
