"""SiLU: a number times its own sigmoid (document 003, stage 6)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import elementwise
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.layers.activations import sigmoid
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, index, real, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.published import rounds_to
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step


def silu(xp: Any, x: Any) -> Any:
    """x σ(x) with the sigmoid σ: without bound where e^{−x} overflows the format, though the result is then near 0."""
    return x * sigmoid(xp, x)


def silu_vjp(xp: Any, x: Any, g: Any) -> Any:
    """dx = g ⊙ silu'(x)."""
    return g * silu_slope(xp, x)


def silu_slope(xp: Any, x: Any) -> Any:
    """σ(x) (1 + x (1 − σ(x)))."""
    s = sigmoid(xp, x)
    return s * (1 + x * (1 - s))


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + sp.exp(-x))


@step()
def _derivative() -> Identities:
    r"""$\text{SiLU}' = \sigma (1 + x (1 - \sigma)) = \sigma(x) + x \sigma(x) \sigma(-x)$."""
    x = real("x")
    s = _sigmoid(x)
    yield sp.diff(x * s, x), s * (1 + x * (1 - s))
    yield sp.diff(x * s, x), s + x * s * _sigmoid(-x)


@step()
def _symmetry() -> Identities:
    r"""$\text{SiLU}(x) - \text{SiLU}(-x) = x$, as for GELU and ReLU."""
    x = real("x")
    yield x * _sigmoid(x) - (-x) * _sigmoid(-x), x


@step()
def _sharpened() -> Identities:
    r"""$x \sigma(\beta x)$ becomes ReLU as $\beta$ grows: SiLU is one of a family of soft switches."""
    x = sp.Symbol("x", positive=True)
    beta = sp.Symbol("beta", positive=True)
    yield computed(sp.limit, x * _sigmoid(beta * x), beta, sp.oo), sp.Max(x, 0)
    yield computed(sp.limit, -x * _sigmoid(-beta * x), beta, sp.oo), sp.Max(-x, 0)


def _lowest() -> float:
    """Where the slope vanishes, 1 + x + e^x = 0, by bisection."""
    low, high = -2.0, -1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if 1 + middle + math.exp(middle) < 0 else (low, middle)
    return low


@step(scope=Scope.NUMERIC, detail="the zero of the slope by bisection")
def _minimum() -> Identities:
    r"""$\text{SiLU}' = \sigma^2 (1 + (1 + x) e^{-x})$, which vanishes where $1 + x + e^x = 0$, at x = -1.2785: it is
    not monotone, and its least value is -0.2785.
    """
    x = real("x")
    s = _sigmoid(x)
    yield sp.diff(x * s, x), s**2 * (1 + (1 + x) * sp.exp(-x))
    lowest = _lowest()
    yield rounds_to(sp.Float(-lowest), "1.2785")
    yield rounds_to(sp.Float(-lowest / (1 + math.exp(-lowest))), "0.2785")


@step()
def _formula() -> Identities:
    """The formula is the statement, for every x."""
    x = real("x")
    xp = Symbolic()
    yield silu(xp, xp.asarray(x)).value[()], x * sp.exp(x) / (1 + sp.exp(x))


@step()
def _any_length() -> Identities:
    """The formula is the statement, for any number of entries."""
    xp, x, i = AnyLength(), vector("x"), index("i")
    yield computed(silu, xp, xp.array("x", dimension("n"))).then(entry(i)), x[i] / (1 + sp.exp(-x[i]))


_any_vjp = vjp_step(lambda: pullbacks(silu, silu_vjp, {"x": "n"}))


EQUATIONS = (
    Equation(
        slug="silu",
        number=None,
        title="SiLU",
        statement=r"\text{SiLU}(x) = x \cdot \sigma(x)",
        sources=(Source("003", "11, Mathematical Formulation", 1299),),
        symbols=(
            Symbol("x", r"\mathbb{R}", "the pre-activation"),
            Symbol(r"\sigma", r"\mathbb{R} \to (0, 1)", "the sigmoid"),
        ),
        assumptions=(Assumption("the pre-activations are numbers", lambda a: bool(np.isfinite(a["x"]).all())),),
        sample=lambda rng: {"x": rng.normal(size=(2, 3)) * 3},
        formula=silu,
        vjp=silu_vjp,
        steps=(_derivative, _symmetry, _sharpened, _minimum, _formula, _any_length, _any_vjp),
        costs=elementwise(4),
    ),
)
