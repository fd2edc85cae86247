"""Adam (equations 7, 8 and 9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import optimizer_costs
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.optimization.adam import Moments, adam, run_adam
from veriformer.spec.optimization.averages import closed_form
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, index, positive, real, vector
from veriformer.spec.proofs.provenance import Computed, computed


def _betas() -> Any:
    return positive("beta_1 beta_2")


def _gradient(i: Any) -> Any:
    return vector("g")[i]


@step("closed-form")
def _first_moment() -> Identities:
    r"""$\mathbf{m}_t = (1 - \beta_1) \sum_{i=1}^t \beta_1^{t-i} \mathbf{g}_i$, by induction: the velocity of momentum
    (5).
    """
    t, (beta, _) = dimension("t"), _betas()
    m, m_next = (closed_form(n, beta, _gradient) for n in (t, t + 1))
    yield closed_form(1, beta, _gradient).doit(), (1 - beta) * _gradient(1)
    yield m_next, beta * m + (1 - beta) * _gradient(t + 1)


@step("formula", scope=Scope.ENUMERATED, detail="t ≤ 3, any gradients")
def _first_moment_formula() -> Identities:
    """The average computed step by step is the closed form."""
    g, betas = vector("g"), _betas()
    for t, s in enumerate(run_adam([g[i] for i in range(1, 4)], lr=positive("eta"), betas=betas), 1):
        yield s.m, closed_form(t, betas[0], _gradient).doit()


@step("formula", scope=Scope.ENUMERATED, detail="t ≤ 3, any gradients")
def _second_moment_formula() -> Identities:
    """The average computed step by step is the closed form."""
    g, betas = vector("g"), _betas()
    for t, s in enumerate(run_adam([g[i] for i in range(1, 4)], lr=positive("eta"), betas=betas), 1):
        yield s.v, closed_form(t, betas[1], lambda i: _gradient(i) ** 2).doit()


@step("closed-form")
def _second_moment() -> Identities:
    r"""$\mathbf{v}_t = (1 - \beta_2) \sum_{i=1}^t \beta_2^{t-i} \mathbf{g}_i^2$, entry by entry: a sum of squares,
    never negative, and zero only while every gradient has been.
    """
    t, (_, beta) = dimension("t"), _betas()
    v, v_next = (closed_form(n, beta, lambda i: _gradient(i) ** 2) for n in (t, t + 1))
    yield v_next, beta * v + (1 - beta) * _gradient(t + 1) ** 2


@step(detail="gradients of two values, any two")
def _expectation() -> Identities:
    r"""Its expectation is $E[g^2] = \mu^2 + \sigma^2$ times the sum of the weights, $1 - \beta_2^t$;
    $\hat{\mathbf{v}}_t$ estimates the second moment, mean included.
    """
    t, (_, beta) = dimension("t"), _betas()
    mu, sigma = real("mu"), positive("sigma")
    # E[g²] of a gradient with mean μ and two equally likely deviations ±σ; the weights leave the common value.
    square = ((mu - sigma) ** 2 + (mu + sigma) ** 2) / 2
    yield closed_form(t, beta, lambda _: square), closed_form(t, beta, lambda _: 1) * (mu**2 + sigma**2)


def _corrected(t: Any, beta: Any, value: Any) -> Any:
    return closed_form(t, beta, value) / closed_form(t, beta, lambda _: 1)


@step()
def _mean_and_spread() -> Identities:
    r"""Of the gradients seen, weighted by $\beta_2^{t-i}$: $\hat{v}_t$ is the square of their mean plus their variance
    about it.
    """
    t, (_, beta) = dimension("t"), _betas()
    mean = _corrected(t, beta, _gradient)
    spread = _corrected(t, beta, lambda i: (_gradient(i) - mean) ** 2)
    yield _corrected(t, beta, lambda i: _gradient(i) ** 2), mean**2 + spread


@step()
def _constant_gradient() -> Identities:
    r"""Under one gradient g the corrected averages are g and $g^2$ from the first step on, so that every step is $\eta
    g / (|g| + \epsilon)$: of length $\eta$, whatever the size of g.
    """
    t, betas, (a, eta, eps) = dimension("t"), _betas(), positive("a eta epsilon")
    for g in (a, -a):
        m_hat = _corrected(t, betas[0], lambda _, g=g: g)
        v_hat = _corrected(t, betas[1], lambda _, g=g: g**2)
        yield eta * m_hat / (sp.sqrt(v_hat) + eps), eta * g / (a + eps)
    last, before = run_adam([a] * 3, lr=eta, betas=betas, eps=eps)[:0:-1][:2]
    yield before.theta - last.theta, eta * a / (a + eps)


@step()
def _scale_invariance() -> Identities:
    r"""A loss (and $\epsilon$) multiplied by $c > 0$ gives the same steps: large gradients do not make large steps."""
    t, c, eps, (beta_1, beta_2) = dimension("t"), positive("c"), positive("epsilon"), _betas()

    def step(c: Any, eps: Any) -> Any:
        v_hat = _corrected(t, beta_2, lambda i: (c * _gradient(i)) ** 2)
        return _corrected(t, beta_1, lambda i: c * _gradient(i)) / (sp.sqrt(v_hat) + eps)

    yield step(c, c * eps), step(1, eps)


@step()
def _epsilon_hat() -> Identities:
    r"""The form $\eta \frac{\sqrt{1 - \beta_2^t}}{1 - \beta_1^t} \frac{m}{\sqrt{v} + \hat\epsilon}$ is (9) with
    $\epsilon = \hat\epsilon / \sqrt{1 - \beta_2^t}$: thirty times larger at the first step.
    """
    # The other order of operations: η √(1 − β₂^t) / (1 − β₁^t) · m / (√v + ε̂).
    t, (beta_1, beta_2), (m, v, eps) = dimension("t"), _betas(), positive("m v epsilon")
    root = sp.sqrt(1 - beta_2**t)
    other = root / (1 - beta_1**t) * m / (sp.sqrt(v) + eps)
    yield other, m / (1 - beta_1**t) / (sp.sqrt(v) / root + eps / root)


@step(scope=Scope.ENUMERATED, detail="t ≤ 2, any gradients")
def _formula() -> Identities:
    """The formula computes the statement with the closed forms of both averages."""
    g, betas, (eta, eps) = vector("g"), _betas(), positive("eta epsilon")
    theta = real("theta")
    for t, s in enumerate(run_adam([g[1], g[2]], lr=eta, betas=betas, eps=eps), 1):
        m_hat = closed_form(t, betas[0], _gradient).doit() / (1 - betas[0] ** t)
        v_hat = closed_form(t, betas[1], lambda i: _gradient(i) ** 2).doit() / (1 - betas[1] ** t)
        theta = theta - eta * m_hat / (sp.sqrt(v_hat) + eps)
        yield s.theta, theta


def after_any_step(optimizer: Callable[..., Any], t: Any = 0, **more: Any) -> Computed:
    """The state after step t + 1 from any averages, of any number of parameters."""
    xp, n = AnyLength(), dimension("n")
    state = Moments(xp.array("theta", n), xp.array("m", n), xp.array("v", n), t)
    options = {"lr": positive("eta"), "betas": positive("beta_1 beta_2"), "eps": positive("epsilon")}
    return computed(optimizer, xp, [state], [xp.array("g", n)], **options, **more).then(
        lambda states: states[0]._replace(**{x: entry(index("i"))(getattr(states[0], x)) for x in ("theta", "m", "v")})
    )


def next_average(name: str, beta: str, gradient: Any) -> Any:
    """β times the average, and 1 − β times what is averaged in."""
    return positive(beta) * vector(name)[index("i")] + (1 - positive(beta)) * gradient


@step()
def _any_first_moment() -> Identities:
    """The formula computes the statement, for any state and every n; the averages do not see the number of the step."""
    yield after_any_step(adam).then(lambda s: s.m), next_average("m", "beta_1", vector("g")[index("i")])


@step()
def _any_second_moment() -> Identities:
    """The formula computes the statement, for any state and every n; the averages do not see the number of the step."""
    yield after_any_step(adam).then(lambda s: s.v), next_average("v", "beta_2", vector("g")[index("i")] ** 2)


STEPS: tuple[Callable[[], Any], ...] = (lambda: 1, lambda: 2 * dimension("k"), lambda: 2 * dimension("k") + 1)
"""Steps that stand for every t: powers are computed by squaring, those of 2k and 2k + 1 from that of k."""


def printed_step(t: Any, g: Any) -> Any:
    """η m̂ / (√v̂ + ε) for one parameter at step t, with the gradient g."""
    m, v = next_average("m", "beta_1", g), next_average("v", "beta_2", g**2)
    beta_1, beta_2 = positive("beta_1 beta_2")
    return positive("eta") * m / (1 - beta_1**t) / (sp.sqrt(v / (1 - beta_2**t)) + positive("epsilon"))


@step()
def _any_step() -> Identities:
    r"""The formula computes the statement, for any state, every n and every t, with the averages divided by what their
    weights sum to so far. Powers are computed by squaring: it is shown for $t = 1$, and for $2k$ and $2k + 1$ from
    $\beta^k$, an induction.
    """
    i = index("i")
    for t in STEPS:
        yield (
            after_any_step(adam, t() - 1).then(lambda s: s.theta),
            vector("theta")[i] - printed_step(t(), vector("g")[i]),
        )


@erratum(
    kind="imprecise",
    source=Source("000", "9.1", 103),
    printed=r"\text{Tracks how much the gradients have been changing}",
    corrected=r"\text{it tracks how large they have been: mean squared plus variance}",
)
def _second_moment_is_not_change() -> Evidence:
    g = sp.Integer(5)
    (*_, s) = run_adam([g] * 10, lr=0, betas=(sp.Rational(9, 10), sp.Rational(999, 1000)))
    v_hat = s.v / (1 - sp.Rational(999, 1000) ** s.t)
    return Evidence("the gradient 5 at every step: its change, and v̂ after 10 steps", g - g, v_hat)


def sample_states(rng: np.random.Generator) -> dict[str, Any]:
    """States of two parameters in the middle of training, and gradients."""
    shapes = ((2, 3), (4,))
    drawn = [rng.normal(size=(3, *s)) for s in shapes]
    states = [Moments(theta, m, v * v, int(rng.integers(0, 5))) for theta, m, v in drawn]
    return {"states": states, "grads": [rng.normal(size=s) for s in shapes]}


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    betas = (float(rng.uniform(0, 0.99)), float(rng.uniform(0, 0.999)))
    return {**sample_states(rng), "lr": float(rng.uniform(0, 1)), "betas": betas, "eps": 1e-8}


ASSUMPTIONS = (
    Assumption("both β are at least 0 and below 1", lambda a: all(0 <= beta < 1 for beta in a["betas"])),
    Assumption("neither the learning rate nor ε is negative", lambda a: a["lr"] >= 0 and a["eps"] >= 0),
    Assumption(
        "ε is positive, or no gradient has been zero at every step",
        lambda a: a["eps"] > 0 or all(bool(g.all()) for g in a["grads"]),
    ),
    Assumption(
        "each gradient has the shape of its parameter",
        lambda a: all(s.theta.shape == g.shape for s, g in zip(a["states"], a["grads"], strict=True)),
    ),
)
_G = Symbol(r"\nabla_\theta \mathcal{L}", r"\mathbb{R}^n", "the gradient at step t, also written g_t")
_M = Symbol(r"\mathbf{m}_t", r"\mathbb{R}^n", "the average of the gradients", "zero before the first step")
_V = Symbol(r"\mathbf{v}_t", r"\mathbb{R}_{\ge 0}^n", "the average of their squares", "zero before the first step")

EQUATIONS = (
    Equation(
        slug="adam-first-moment",
        number="7",
        title="Adam's first moment",
        statement=r"\mathbf{m}_t = \beta_1 \mathbf{m}_{t-1} + (1-\beta_1) \nabla_\theta \mathcal{L}",
        sources=(Source("000", "9.1", 87), Source("001", "9.1", 92), Source("004", "3.5", 440)),
        symbols=(_M, _G, Symbol(r"\beta_1", "[0, 1)", "how much of the average is kept", "0.9 as a rule")),
        assumptions=ASSUMPTIONS,
        sample=_sample,
        formula=adam,
        steps=(_first_moment, _any_first_moment, _first_moment_formula),
        costs=optimizer_costs("exponential_average"),
    ),
    Equation(
        slug="adam-second-moment",
        number="8",
        title="Adam's second moment",
        statement=r"\mathbf{v}_t = \beta_2 \mathbf{v}_{t-1} + (1-\beta_2) (\nabla_\theta \mathcal{L})^2",
        sources=(Source("000", "9.1", 88), Source("001", "9.1", 93), Source("004", "3.5", 441)),
        symbols=(_V, _G, Symbol(r"\beta_2", "[0, 1)", "how much of the average is kept", "0.999 as a rule")),
        assumptions=ASSUMPTIONS,
        sample=_sample,
        formula=adam,
        steps=(_second_moment, _expectation, _mean_and_spread, _any_second_moment, _second_moment_formula),
        costs=optimizer_costs("square_average"),
        errata=(_second_moment_is_not_change,),
    ),
    Equation(
        slug="adam-step",
        number="9",
        title="Adam's step",
        statement=r"\theta_t = \theta_{t-1} - \eta \frac{\hat{\mathbf{m}}_t}{\sqrt{\hat{\mathbf{v}}_t} + \epsilon}",
        sources=(Source("000", "9.1", 89), Source("001", "9.1", 94), Source("004", "3.5", 442)),
        symbols=(
            _M,
            _V,
            Symbol(
                r"\hat{\mathbf{m}}_t, \hat{\mathbf{v}}_t",
                r"\mathbb{R}^n, \mathbb{R}_{\ge 0}^n",
                r"the averages without bias: divided by $1 - \beta_1^t$ and $1 - \beta_2^t$",
            ),
            Symbol(r"\epsilon", r"\mathbb{R}_{\ge 0}", "a small number", "added to the root, not under it"),
            Symbol(r"\eta", r"\mathbb{R}_{\ge 0}", "learning rate"),
        ),
        assumptions=ASSUMPTIONS,
        sample=_sample,
        formula=adam,
        steps=(_constant_gradient, _scale_invariance, _epsilon_hat, _any_step, _formula),
        costs=optimizer_costs("adam"),
    ),
)
