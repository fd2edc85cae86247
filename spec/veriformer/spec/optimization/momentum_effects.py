"""Claims about momentum: it rolls over bumps, speeds up in consistent directions, slows down where they change."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.optimization.sgd_momentum import MomentumState, sgd_momentum
from veriformer.spec.proofs.indexed import positive, real
from veriformer.spec.proofs.published import holds


def _next_velocity(v: Any, g: Any) -> Any:
    xp = Symbolic()
    (state,) = sgd_momentum(xp, [MomentumState(0, v)], [g], lr=positive("eta"), beta=positive("beta"))
    return state.v.value[()]


@step()
def _consistent() -> Identities:
    r"""Under one gradient g the distance of the velocity from g shrinks by $\beta$ at each step. From rest it speeds up
    to g and stays below it: as printed, with $(1 - \beta)$, momentum never moves faster than gradient descent with the
    same $\eta$; without that factor it is $1 / (1 - \beta)$ times as fast.
    """
    beta, (g, e) = positive("beta"), real("g e")
    yield _next_velocity(g + e, g), g + beta * e


@step()
def _changing() -> Identities:
    r"""Gradients $g, -g, g, \ldots$ bring the velocity to $\pm \kappa g$ with $\kappa = (1 - \beta) / (1 + \beta)$, for
    whatever else is in it shrinks by $\beta$. For $\beta = 0.9$ steps across a valley are a nineteenth as long.
    """
    beta, (g, e) = positive("beta"), real("g e")
    kappa = (1 - beta) / (1 + beta)
    yield _next_velocity(-kappa * g + e, g), kappa * g + beta * e


@step()
def _reversed() -> Identities:
    r"""A first gradient in the opposite direction takes $2 (1 - \beta) g$ off the velocity g: it slows down and, for
    $\beta > 1/2$, does not turn at once.
    """
    g = real("g")
    yield _next_velocity(g, -g), g - 2 * (1 - positive("beta")) * g


def _bumpy_slope(x: Fraction) -> Fraction:
    """The slope of a line that falls to the right, but for a bump of height 1/8 between 0 and 1/4."""
    return Fraction(1, 2) if 0 <= x < Fraction(1, 4) else Fraction(-1)


def _farthest(beta: Fraction) -> Fraction:
    """The largest of 60 positions, from rest at −2 on the bumpy slope with η = 0.1."""
    x, v, farthest = Fraction(-2), Fraction(0), Fraction(-2)
    for _ in range(60):
        v = beta * v + (1 - beta) * _bumpy_slope(x)
        x -= v / 10
        farthest = max(farthest, x)
    return farthest


@step(scope=Scope.NUMERIC, detail="one slope, 60 steps in exact fractions; a bump high or wide enough stops either")
def _bump() -> Identities:
    r"""On a slope of 1 with a bump of slope 1/2 and width 1/4, gradient descent with $\eta = 0.1$ stays in front of the
    bump, and momentum with $\beta = 0.9$ rolls over it.
    """
    yield holds(_farthest(Fraction(0)) < Fraction(1, 4))
    yield holds(_farthest(Fraction(9, 10)) > 2)


@step(detail="quadratic losses, one coordinate")
def _stability() -> Identities:
    r"""On $\lambda \theta^2 / 2$ a step is linear, with characteristic polynomial $p(z) = z^2 - (1 + \beta - \eta (1 -
    \beta) \lambda) z + \beta$. Its roots lie inside the unit circle exactly if $p(1) > 0$, $p(-1) > 0$ and $|p(0)| <
    1$: for $0 < \eta \lambda < 2 \frac{1 + \beta}{1 - \beta}$, so that $\beta = 0.9$ admits a rate 19 times that of
    gradient descent. That is where its speed comes from.
    """
    # One step on the loss λ θ² / 2, whose gradient is λ θ, as a matrix over (v, θ).
    beta, eta, lam, z = positive("beta"), positive("eta"), positive("lambda"), real("z")
    v, theta = real("v theta")
    xp = Symbolic()
    (after,) = sgd_momentum(xp, [MomentumState(theta, v)], [lam * theta], lr=eta, beta=beta)
    rows = [after.v.value[()], after.theta.value[()]]
    step = sp.Matrix([[sp.diff(row, x) for x in (v, theta)] for row in rows])
    polynomial = (z * sp.eye(2) - step).det()
    yield polynomial, z**2 - (1 + beta - eta * (1 - beta) * lam) * z + beta
    yield polynomial.subs(z, 1), eta * (1 - beta) * lam
    yield polynomial.subs(z, -1), (1 - beta) * (2 * (1 + beta) / (1 - beta) - eta * lam)


_SOURCES = (Source("000", "9.1", 63), Source("001", "9.1", 67))

EQUATIONS = (
    Equation(
        slug="momentum-claims",
        number=None,
        title="What momentum does",
        statement=r"\text{Roll through small bumps; speed up in consistent directions; slow down when direction "
        r"changes}",
        sources=_SOURCES,
        symbols=(
            Symbol("v", r"\mathbb{R}", "the velocity in one coordinate"),
            Symbol("g", r"\mathbb{R}", "the gradient there"),
            Symbol(r"\beta", "[0, 1)", "how much of the velocity is kept"),
            Symbol(r"\lambda", r"\mathbb{R}_{> 0}", r"curvature of the loss $\lambda \theta^2 / 2$"),
        ),
        steps=(_consistent, _changing, _reversed, _bump, _stability),
    ),
)
