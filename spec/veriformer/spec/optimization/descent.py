"""Why gradient descent goes down, and for which learning rates (documents 002, section 2.1.1, and 004, 3.5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import optimizer_costs
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Source, Symbol, erratum, step
from veriformer.spec.optimization.gradient_descent import gradient_descent
from veriformer.spec.optimization.gradient_flow import hessian, quadratic, slope
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, index, positive, real, sum_over, vector
from veriformer.spec.proofs.provenance import computed


@step()
def _steepest() -> Identities:
    r"""For a unit direction u, $\mathbf{g} \cdot \mathbf{u} = -\|\mathbf{g}\| + \frac{\|\mathbf{g}\|}{2} \|\mathbf{u} +
    \mathbf{g} / \|\mathbf{g}\|\|^2$. The loss falls fastest where the last term is zero: along $-\mathbf{g}$.
    """
    # For a unit direction u: the rate of change g · u against its least value −‖g‖.
    g, u, size = vector("g"), vector("u"), positive("G")
    squares = sum_over("n", lambda i: g[i] ** 2) / size**2 + sum_over("n", lambda i: u[i] ** 2)
    gap = size / 2 * sum_over("n", lambda i: (u[i] + g[i] / size) ** 2)
    yield sum_over("n", lambda i: g[i] * u[i]) + size / 2 * squares, gap


@step()
def _opposite() -> Identities:
    r"""A parameter moves by $-\eta g_i$, and $-\eta g_i \cdot g_i = -\eta g_i^2 \le 0$: to the left where the slope is
    positive, to the right where it is negative.
    """
    xp, eta, i, n = AnyLength(), positive("eta"), index("i"), dimension("n")
    theta, g = vector("theta")[i], vector("g")[i]
    moved = computed(gradient_descent, xp, [xp.array("theta", n)], [xp.array("g", n)], lr=eta)
    yield moved.then(lambda new: (entry(i)(new[0]) - theta) * g), -eta * g**2


@step()
def _loss_after_a_step() -> Identities:
    r"""$\mathcal{L}(\theta - \eta \mathbf{g}) = \mathcal{L}(\theta) - \eta \|\mathbf{g}\|^2 + \frac{\eta^2}{2}
    \mathbf{g}^T H \mathbf{g}$, exactly for a quadratic loss, and with H taken somewhere on the way for any other. With
    no curvature above M the loss falls by at least $\eta (1 - \eta M / 2) \|\mathbf{g}\|^2$: downhill for every $\eta <
    2 / M$.
    """
    # For a step along any g; along the gradient the first term is −η ‖g‖².
    eta, theta, g = positive("eta"), vector("theta"), vector("g")
    change = quadratic(lambda i: theta[i] - eta * g[i]) - quadratic(lambda i: theta[i])
    curvature = sum_over("n", lambda i: sum_over("n", lambda j: g[i] * hessian(i, j) * g[j]))
    yield change, -eta * sum_over("n", lambda i: g[i] * slope(i)) + eta**2 / 2 * curvature


@step()
def _closed_form() -> Identities:
    r"""On $\lambda \theta^2 / 2$, with $x = \eta \lambda$, every step multiplies by $1 - x$: by induction $\theta_k =
    (1 - x)^k \theta_0$.
    """
    k, x, theta = dimension("k"), positive("x"), real("theta_0")
    yield (1 - x) ** k * theta - x * (1 - x) ** k * theta, (1 - x) ** (k + 1) * theta


@step()
def _stable() -> Identities:
    r"""$1 - (1 - x)^2 = x (2 - x)$: the factor is below 1 in size exactly for $0 < \eta \lambda < 2$. Just right
    converges; larger diverges.
    """
    x = positive("x")
    yield 1 - (1 - x) ** 2, x * (2 - x)


@step()
def _overshoot() -> Identities:
    r"""$\theta_k \theta_{k+1} = -(x - 1) \theta_k^2$: for $x > 1$ each step overshoots the minimum and changes sign.
    Too large a rate oscillates, and from 2 on without end.
    """
    x, theta = positive("x"), real("theta")
    yield theta * (theta - x * theta), -(x - 1) * theta**2


@step()
def _slow() -> Identities:
    r"""$(1 - x)^k \ge 1 - k x$ for $0 \le x \le 1$ (by induction; the step leaves $k x^2 \ge 0$ over): after k steps at
    least $1 - k \eta \lambda$ of the way remains. Too small a rate is slow.
    """
    # Bernoulli's inequality by induction: the step from k to k + 1 leaves k x² over.
    k, x = dimension("k"), positive("x")
    yield (1 - x) * (1 - k * x), 1 - (k + 1) * x + k * x**2


@step()
def _best_rate() -> Identities:
    r"""Between curvatures $\mu$ and M the rate $2 / (\mu + M)$ shrinks both ends alike, by $(\kappa - 1) / (\kappa +
    1)$ with $\kappa = M / \mu$: one rate for all parameters pays for unequal curvatures.
    """
    low, gap = positive("mu Delta")
    high = low + gap
    eta, kappa = 2 / (low + high), (low + gap) / low
    yield 1 - eta * low, -(1 - eta * high)
    yield 1 - eta * low, (kappa - 1) / (kappa + 1)


@erratum(
    kind="imprecise",
    source=Source("002", "2.2.3", 381),
    printed=r"\text{Zero gradients: Parameter doesn't affect error}",
    corrected=r"\text{it does not to first order; the second derivative may}",
)
def _zero_gradient() -> Evidence:
    theta = sp.Symbol("theta")
    loss = theta**2
    slope_there = sp.diff(loss, theta).subs(theta, 0)
    return Evidence("L(θ) = θ² at θ = 0: gradient, and effect L(1) − L(0)", slope_there, loss.subs(theta, 1))


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    params, grads = rng.normal(size=(2, 2, 4))
    return {"params": list(params), "grads": list(grads), "lr": float(rng.uniform(0, 2))}


EQUATIONS = (
    Equation(
        slug="gradient-descent",
        number=None,
        title="Gradient descent and its learning rate",
        statement=r"\theta_{t+1} = \theta_t - \eta \nabla_\theta \mathcal{L}",
        sources=(
            Source("002", "2.1.1", 73),
            Source("002", "2.1.1", 131),
            Source("002", "2.1.1", 164),
            Source("002", "2.1.1", 264),
            Source("002", "2.1.2", 300),
            Source("004", "3.5", 431),
        ),
        symbols=(
            Symbol(r"\theta_t", r"\mathbb{R}^n", "the parameters after t steps"),
            Symbol(r"\eta", r"\mathbb{R}_{\ge 0}", "learning rate, also written α"),
            Symbol(r"\mathbf{g}", r"\mathbb{R}^n", "the gradient of the loss"),
            Symbol(r"\lambda", r"\mathbb{R}_{> 0}", "curvature along one axis of the valley", r"between $\mu$ and M"),
        ),
        assumptions=(Assumption("the learning rate is not negative", lambda a: a["lr"] >= 0),),
        sample=_sample,
        formula=gradient_descent,
        steps=(_steepest, _opposite, _loss_after_a_step, _closed_form, _stable, _overshoot, _slow, _best_rate),
        costs=optimizer_costs("gradient_descent"),
        errata=(_zero_gradient,),
    ),
)
