"""Stochastic gradient descent with momentum (equations 5 and 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.costs import optimizer_costs
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.optimization.averages import average, closed_form
from veriformer.spec.optimization.updates import each, zeros
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, index, positive, real, symbolic_sum, vector
from veriformer.spec.proofs.provenance import Computed, computed


class MomentumState(NamedTuple):
    """A parameter θ and its velocity v, of one shape."""

    theta: Any
    v: Any


def sgd_momentum_start(xp: Any, params: Sequence[Any]) -> list[MomentumState]:
    """Parameters at rest: v_0 = 0."""
    return [MomentumState(theta, zeros(xp, theta)) for theta in params]


def sgd_momentum(
    xp: Any, states: Sequence[MomentumState], grads: Sequence[Any], *, lr: Any, beta: Any = 0.9
) -> list[MomentumState]:
    """v ← β v + (1 − β) g, then θ ← θ − η v, for each parameter (equations 5 and 6).

    A gradient of None leaves its parameter and its velocity alone. Libraries whose first velocity is the first
    gradient, undamped, start from v_0 = g_1 instead.
    """

    def update(s: MomentumState, g: Any) -> MomentumState:
        v = average(xp, xp.asarray(s.v), g, beta)
        return MomentumState(xp.asarray(s.theta) - v * lr, v)

    return each(xp, update, states, grads)


def _gradient(i: Any) -> Any:
    return vector("g")[i]


def _velocity(t: Any) -> Any:
    return closed_form(t, positive("beta"), _gradient)


@step()
def _closed_form() -> Identities:
    r"""The velocity is the exponential average of the gradients, $\mathbf{v}_t = (1 - \beta) \sum_{i=1}^t \beta^{t-i}
    \mathbf{g}_i$: by induction from $\mathbf{v}_0 = 0$.
    """
    t, beta = dimension("t"), positive("beta")
    yield _velocity(1).doit(), (1 - beta) * _gradient(1)
    yield _velocity(t + 1), beta * _velocity(t) + (1 - beta) * _gradient(t + 1)


def _run(gradients: Sequence[Any], beta: Any, lr: Any, first: Any = 0) -> list[MomentumState]:
    """The states after each step, of one number θ that starts at the symbol θ, with v_0 = first."""
    xp = Symbolic()
    states = [MomentumState(xp.asarray(real("theta")), xp.asarray(first))]
    for g in gradients:
        states += sgd_momentum(xp, states[-1:], [xp.asarray(g)], lr=lr, beta=beta)
    return [MomentumState(*(x.value[()] for x in s)) for s in states[1:]]


@step("formula", scope=Scope.ENUMERATED, detail="t ≤ 4, any gradients")
def _velocity_formula() -> Identities:
    """The velocity computed step by step is the closed form."""
    g, beta, eta = vector("g"), positive("beta"), positive("eta")
    for t, state in enumerate(_run([g[i] for i in range(1, 5)], beta, eta), 1):
        yield state.v, _velocity(t).doit()


@step()
def _first_step() -> Identities:
    r"""From rest the first velocity is $(1 - \beta) \mathbf{g}_1$: damped. A start at $\mathbf{v}_0 = \mathbf{g}_1$
    gives $\mathbf{g}_1$ itself, which is what libraries call an undamped first step.
    """
    g, beta, eta = real("g"), positive("beta"), positive("eta")
    damped, undamped = _run([g], beta, eta)[0], _run([g], beta, eta, first=g)[0]
    yield damped.v, g - beta * g
    yield undamped.v, g


@step()
def _heavy_ball() -> Identities:
    r"""The other common form, $\mathbf{w}_t = \beta \mathbf{w}_{t-1} + \mathbf{g}_t$, is the same but for the learning
    rate: $\mathbf{v}_t = (1 - \beta) \mathbf{w}_t$.
    """
    # The other common form, w ← β w + g, from rest.
    t, beta, i = dimension("t"), positive("beta"), index("i")
    w, w_next = (symbolic_sum(beta ** (n - i) * _gradient(i), i, n) for n in (t, t + 1))
    yield w_next, beta * w + _gradient(t + 1)
    yield _velocity(t), (1 - beta) * w


@step()
def _two_steps() -> Identities:
    r"""Without the velocity: $\theta_{t+1} - \theta_t = \beta (\theta_t - \theta_{t-1}) - \eta (1 - \beta)
    \mathbf{g}_{t+1}$. A part $\beta$ of the last step is made again; with $\beta = 0$ it is gradient descent.
    """
    beta, eta, (a, b, v) = positive("beta"), positive("eta"), real("a b v")
    one, two = _run([a, b], beta, eta, first=v)
    yield two.theta - one.theta, beta * (one.theta - real("theta")) - eta * (1 - beta) * b
    yield (two.theta - one.theta).subs(beta, 0), -eta * b


@step()
def _newton() -> Identities:
    r"""Divided by $\eta (1 - \beta)$ that is Newton's law with friction, in steps of length $\eta$: $\frac{\eta
    \beta}{1 - \beta} \ddot{\theta} + \dot{\theta} = -\nabla \mathcal{L}$. Momentum is a ball of mass $\eta \beta / (1 -
    \beta)$; without it, (3).
    """
    beta, eta, (p, q, r, g) = positive("beta"), positive("eta"), real("p q r g")
    two_step = r - q - beta * (q - p) + eta * (1 - beta) * g
    mass = eta * beta / (1 - beta)
    acceleration, speed = (r - 2 * q + p) / eta**2, (r - q) / eta
    yield two_step / (eta * (1 - beta)), mass * acceleration + speed + g


@step()
def _reach() -> Identities:
    r"""A single gradient moves the parameter by $\eta (1 - \beta) \beta^k \mathbf{g}$ in the k-th step after it; within
    k steps by $\eta (1 - \beta^k) \mathbf{g}$, in the end by $\eta \mathbf{g}$, just as much as gradient descent moves
    it at once.
    """
    # A gradient g_i moves θ by η (1 − β) g_i β^k at each later step k: differences of neighbours once more.
    k, beta, eta, g = dimension("k"), positive("beta"), positive("eta"), real("g")
    rest = eta * g * beta**k
    yield eta * (1 - beta) * g * beta**k, rest - rest.subs(k, k + 1)
    yield rest.subs(k, 0) - rest, eta * g * (1 - beta**k)


@step("formula", scope=Scope.ENUMERATED, detail="t ≤ 3, any gradients")
def _step_formula() -> Identities:
    """The formula computes the statement with the closed form of the velocity."""
    g, beta, eta = vector("g"), positive("beta"), positive("eta")
    theta = real("theta")
    for t, state in enumerate(_run([g[i] for i in range(1, 4)], beta, eta), 1):
        theta = theta - eta * _velocity(t).doit()
        yield state.theta, theta


def _after_a_step() -> Computed:
    """The state after a step from any state, of any number of parameters."""
    xp, n = AnyLength(), dimension("n")
    state = MomentumState(xp.array("theta", n), xp.array("v", n))
    return computed(sgd_momentum, xp, [state], [xp.array("g", n)], lr=positive("eta"), beta=positive("beta")).then(
        lambda states: MomentumState(*map(entry(index("i")), states[0]))
    )


def _next_velocity() -> Any:
    i, beta = index("i"), positive("beta")
    return beta * vector("v")[i] + (1 - beta) * vector("g")[i]


@step()
def _any_velocity() -> Identities:
    """The formula computes the statement, at every step, for any state and every n."""
    yield _after_a_step().then(lambda s: s.v), _next_velocity()


@step()
def _any_step() -> Identities:
    """The formula computes the statement, at every step, for any state and every n."""
    yield _after_a_step().then(lambda s: s.theta), vector("theta")[index("i")] - positive("eta") * _next_velocity()


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    shapes = ((2, 3), (4,))
    states = [MomentumState(*rng.normal(size=(2, *s))) for s in shapes]
    grads = [rng.normal(size=s) for s in shapes]
    return {"states": states, "grads": grads, "lr": float(rng.uniform(0, 1)), "beta": float(rng.uniform(0, 0.99))}


_ASSUMPTIONS = (
    Assumption("β is at least 0 and below 1", lambda a: 0 <= a["beta"] < 1),
    Assumption("the learning rate is not negative", lambda a: a["lr"] >= 0),
    Assumption(
        "each gradient has the shape of its parameter",
        lambda a: all(s.theta.shape == g.shape for s, g in zip(a["states"], a["grads"], strict=True)),
    ),
)
_SYMBOLS = (
    Symbol(r"\mathbf{v}_t", r"\mathbb{R}^n", "the velocity", "zero before the first step"),
    Symbol(r"\theta_t", r"\mathbb{R}^n", "the parameters"),
    Symbol(r"\beta", "[0, 1)", "how much of the velocity is kept"),
    Symbol(r"\nabla_\theta \mathcal{L}", r"\mathbb{R}^n", "the gradient at step t, also written g_t"),
)

EQUATIONS = (
    Equation(
        slug="momentum-velocity",
        number="5",
        title="The velocity of momentum",
        statement=r"\mathbf{v}_t = \beta \mathbf{v}_{t-1} + (1-\beta) \nabla_\theta \mathcal{L}",
        sources=(Source("000", "9.1", 58), Source("001", "9.1", 62)),
        symbols=_SYMBOLS,
        assumptions=_ASSUMPTIONS,
        sample=_sample,
        formula=sgd_momentum,
        steps=(_closed_form, _first_step, _heavy_ball, _any_velocity, _velocity_formula),
        costs=optimizer_costs("sgd_momentum"),
    ),
    Equation(
        slug="momentum-step",
        number="6",
        title="The step of momentum",
        statement=r"\theta_t = \theta_{t-1} - \eta \mathbf{v}_t",
        sources=(Source("000", "9.1", 59), Source("001", "9.1", 63)),
        symbols=(*_SYMBOLS, Symbol(r"\eta", r"\mathbb{R}_{\ge 0}", "learning rate")),
        assumptions=_ASSUMPTIONS,
        sample=_sample,
        formula=sgd_momentum,
        steps=(_two_steps, _newton, _reach, _any_step, _step_formula),
        costs=optimizer_costs("sgd_momentum"),
    ),
)
