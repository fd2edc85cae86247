"""Gradient descent, and the flow that it approximates (equation 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import optimizer_costs
from veriformer.spec.equation import Assumption, Equation, Identities, Source, Symbol, step
from veriformer.spec.optimization.euler import LOCAL_ERROR
from veriformer.spec.optimization.gradient_descent import gradient_descent
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, index, positive, real, sum_over, vector
from veriformer.spec.proofs.provenance import computed


def quadratic(theta: Any) -> Any:
    """½ θᵀ H θ − b · θ in any number n of coordinates, with the symmetric H = (A + Aᵀ) / 2."""
    a, b = vector("A"), vector("b")
    square = sum_over("n", lambda i: sum_over("n", lambda j: a[i, j] * theta(i) * theta(j)))
    return square / 2 - sum_over("n", lambda i: b[i] * theta(i))


def hessian(i: Any, j: Any) -> Any:
    """H_ij of the quadratic loss."""
    return (vector("A")[i, j] + vector("A")[j, i]) / 2


def slope(i: Any) -> Any:
    """The i-th entry of its gradient H θ − b."""
    return sum_over("n", lambda j: hessian(i, j) * vector("theta")[j]) - vector("b")[i]


def _theta(i: Any) -> Any:
    return vector("theta")[i]


@step(detail="quadratic losses")
def _descends() -> Identities:
    r"""Along the flow the loss falls as fast as its gradient is steep: $\frac{d\mathcal{L}}{dt} = \nabla \mathcal{L}
    \cdot \frac{d\theta}{dt} = -\|\nabla \mathcal{L}\|^2$ (here for every quadratic loss in any number of parameters;
    what a smooth loss is to second order).
    """
    # The chain rule with dθ/dt = −∇L.
    i = index("i")
    loss = quadratic(_theta)
    yield sp.diff(loss, _theta(i)), slope(i)
    yield sum_over("n", lambda k: sp.diff(loss, _theta(k)) * -slope(k)), -sum_over("n", lambda k: slope(k) ** 2)


@step(detail="quadratic losses")
def _acceleration() -> Identities:
    r"""For $F = -\nabla \mathcal{L}$ the Jacobian is $-H$ and $J F = H \nabla \mathcal{L}$. So a step $\theta - \eta
    \nabla \mathcal{L}$ misses $\frac{\eta^2}{2} H \nabla \mathcal{L} + O(\eta^3)$ of the flow: little where $\eta
    \lambda \ll 1$ for the curvature $\lambda$ along the gradient.
    """
    i, k = index("i k")
    yield sp.diff(-slope(i), _theta(k)), -hessian(i, k)
    turned = sum_over("n", lambda j: sp.diff(-slope(i), _theta(j)) * -slope(j))
    yield turned, sum_over("n", lambda j: hessian(i, j) * slope(j))


@step(detail="quadratic losses, one coordinate")
def _exactly() -> Identities:
    r"""On $\lambda \theta^2 / 2$ with $x = \eta \lambda$ the flow multiplies by $e^{-x}$, the step by $1 - x$, and
    $e^{-x} - (1 - x) = x^2 \int_0^1 (1 - s) e^{-xs} ds$, between 0 and $x^2 / 2$.
    """
    # ∫₀¹ (1 − s) e^{−xs} ds by its antiderivative.
    x, s = positive("x"), real("s")
    primitive = (1 / x**2 - (1 - s) / x) * sp.exp(-x * s)
    yield sp.diff(primitive, s), (1 - s) * sp.exp(-x * s)
    yield x**2 * (primitive.subs(s, 1) - primitive.subs(s, 0)), sp.exp(-x) - (1 - x)


@step()
def _many_steps() -> Identities:
    r"""$p^k - q^k = (p - q) \sum_{j<k} p^j q^{k-1-j}$ telescopes. With $p = e^{-x}$, $q = 1 - x$ and $0 \le x \le 1$
    the error of k steps is at most $k x^2 / 2 = \frac{\eta}{2} \lambda^2 t$: over a fixed time t it is of first order
    in $\eta$, and vanishes with it.
    """
    j, k, (p, q) = index("j"), dimension("k"), positive("p q")
    mixed = p**j * q ** (k - j)
    yield (p - q) * p**j * q ** (k - 1 - j), mixed.subs(j, j + 1) - mixed
    yield mixed.subs(j, k) - mixed.subs(j, 0), -(q**k - p**k)


@step()
def _any_length() -> Identities:
    r"""The formula computes the step $\theta - \eta \nabla \mathcal{L}$, for every n."""
    xp, n, i, eta = AnyLength(), dimension("n"), index("i"), positive("eta")
    moved = computed(gradient_descent, xp, [xp.array("theta", n)], [xp.array("g", n)], lr=eta)
    yield moved.then(lambda params: entry(i)(params[0])), vector("theta")[i] - eta * vector("g")[i]


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    params, grads = ([rng.normal(size=s) for s in ((2, 3), (4,))] for _ in range(2))
    return {"params": params, "grads": grads, "lr": float(rng.uniform(0, 1))}


EQUATIONS = (
    Equation(
        slug="gradient-flow",
        number="3",
        title="Gradient flow",
        statement=r"\frac{d\theta}{dt} = -\nabla_\theta \mathcal{L}(\theta)",
        sources=(Source("002", "2.1.2", 302),),
        symbols=(
            Symbol(r"\theta", r"\mathbb{R}^n", "the parameters"),
            Symbol(r"\mathcal{L}", r"\mathbb{R}^n \to \mathbb{R}", "the loss", "twice differentiable"),
            Symbol("H", r"\mathbb{R}^{n \times n}", "the matrix of its second derivatives"),
            Symbol(r"\eta", r"\mathbb{R}_{\ge 0}", r"learning rate: the length of a step in time, $t = k \eta$"),
        ),
        assumptions=(
            Assumption("the learning rate is not negative", lambda a: a["lr"] >= 0),
            Assumption(
                "each gradient has the shape of its parameter",
                lambda a: all(p.shape == g.shape for p, g in zip(a["params"], a["grads"], strict=True)),
            ),
        ),
        sample=_sample,
        formula=gradient_descent,
        steps=(_descends, *LOCAL_ERROR, _acceleration, _exactly, _many_steps, _any_length),
        costs=optimizer_costs("gradient_descent"),
    ),
)
