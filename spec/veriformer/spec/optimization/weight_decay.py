"""AdamW, and Adam with L2 regularisation: why the two differ (documents 000 and 001, section 9.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import optimizer_costs
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.optimization.adam import Moments, adam, run_adam
from veriformer.spec.optimization.adam_derivation import ASSUMPTIONS, STEPS, after_any_step, printed_step, sample_states
from veriformer.spec.optimization.adamw import adamw
from veriformer.spec.optimization.gradient_descent import gradient_descent
from veriformer.spec.proofs.indexed import dimension, index, positive, real, sum_over, vector


def _options() -> dict[str, Any]:
    eta, eps, decay = positive("eta epsilon lambda")
    return {"lr": eta, "eps": eps, "weight_decay": decay, "betas": positive("beta_1 beta_2")}


@step()
def _penalty() -> Identities:
    r"""L2 regularisation adds $\frac{\lambda}{2} \|\theta\|^2$ to the loss, and so $\lambda \theta$ to the gradient,
    before any average is taken.
    """
    theta, decay, i = vector("theta"), positive("lambda"), sp.Symbol("i", integer=True)
    yield sp.diff(decay / 2 * sum_over("n", lambda k: theta[k] ** 2), theta[i]), decay * theta[i]


@step()
def _same_for_descent() -> Identities:
    r"""For gradient descent that is decay: $\theta - \eta (\mathbf{g} + \lambda \theta) = (1 - \eta \lambda) \theta -
    \eta \mathbf{g}$.
    """
    theta, g = real("theta g")
    eta, decay = positive("eta lambda")
    xp = Symbolic()
    (moved,) = gradient_descent(xp, [xp.asarray(theta)], [xp.asarray(g + decay * theta)], lr=eta)
    yield moved.value[()], (1 - eta * decay) * theta - eta * g


def _first_step(step: Any, gradient: Any, **options: Any) -> Any:
    """θ_1, from a positive θ with positive gradient and decay, so that all that pulls has one sign."""
    xp = Symbolic()
    (s,) = step(xp, [Moments(positive("theta"), 0, 0, 0)], [gradient], **{**_options(), **options})
    return s.theta.value[()]


@step(detail="the first step, where all that pulls has one sign")
def _decay_of_l2() -> Identities:
    r"""Not so for Adam. Its first step $\eta \frac{c g + \lambda \theta}{|c g + \lambda \theta| + \epsilon}$ changes
    with $\lambda$ by $\eta \frac{\theta \epsilon}{(|c g + \lambda \theta| + \epsilon)^2}$: the larger the gradient, the
    less a parameter decays. With $\epsilon = 0$ and all of one sign it is $\eta$ whatever $\lambda$ is, where AdamW
    takes off $\eta \lambda \theta$ more.
    """
    theta, g, c, eta, eps, decay = positive("theta g c eta epsilon lambda")
    pull = c * g + decay * theta
    yield sp.diff(_first_step(adam, c * g), decay), -eta * theta * eps / (pull + eps) ** 2
    yield _first_step(adam, c * g, eps=0), theta - eta
    yield _first_step(adamw, c * g, eps=0), (1 - eta * decay) * theta - eta


@step()
def _any_step() -> Identities:
    r"""The formula computes Adam's step with $\lambda \theta$ added to the gradient, for any state, every n and t."""
    i, decay = index("i"), positive("lambda")
    g = vector("g")[i] + decay * vector("theta")[i]
    for t in STEPS:
        after = after_any_step(adam, t() - 1, weight_decay=decay)
        yield after.then(lambda s: s.theta), vector("theta")[i] - printed_step(t(), g)


@step(scope=Scope.ENUMERATED, detail="two steps, any gradients")
def _decay_of_adamw() -> Identities:
    r"""Decay takes $\eta \lambda \theta$ off at each step, regardless of the gradients and of their size, and no
    average knows of it; without it AdamW is Adam.
    """
    g, options = vector("g"), _options()
    gradients = [g[1], g[2]]
    with_decay = run_adam(gradients, adamw, **options)
    without = run_adam(gradients, adam, **{**options, "weight_decay": 0})
    shrunk = 1 - options["lr"] * options["weight_decay"]
    yield with_decay[0].theta - without[0].theta, -options["lr"] * options["weight_decay"] * real("theta")
    yield with_decay[0].m, without[0].m
    yield with_decay[1].m, without[1].m
    yield with_decay[1].v, without[1].v
    first_step = real("theta") - without[0].theta
    yield with_decay[1].theta - without[1].theta, (shrunk**2 - 1) * real("theta") + (1 - shrunk) * first_step


@step("any-step")
def _any_decoupled_step() -> Identities:
    """The formula computes the statement, for any state, every n and every t."""
    i, decay = index("i"), positive("lambda")
    kept = (1 - positive("eta") * decay) * vector("theta")[i]
    for t in STEPS:
        after = after_any_step(adamw, t() - 1, weight_decay=decay)
        yield after.then(lambda s: s.theta), kept - printed_step(t(), vector("g")[i])


@step()
def _geometric() -> Identities:
    r"""Where its gradients are zero a parameter shrinks as $(1 - \eta \lambda)^k \theta_0$: by half in about $0.7 /
    (\eta \lambda)$ steps. The rate of decay is $\eta \lambda$, and follows the schedule of $\eta$.
    """
    k, (eta, decay), theta = dimension("k"), positive("eta lambda"), real("theta_0")
    yield (1 - eta * decay) * ((1 - eta * decay) ** k * theta), (1 - eta * decay) ** (k + 1) * theta


@step()
def _as_printed() -> Identities:
    r"""$\theta - u - \eta \lambda \theta = (1 - \eta \lambda) \theta - u$: the two formulas that the documents print to
    show the difference are one.
    """
    theta, step = real("theta u")
    eta, decay = positive("eta lambda")
    yield theta - step - eta * decay * theta, (1 - eta * decay) * theta - step


def _numbers(step: Any, g: Any, **options: Any) -> Any:
    """θ_1 from θ_0 = 1 by one step of Adam or AdamW with these options."""
    xp = Symbolic()
    betas = (sp.Rational(9, 10), sp.Rational(999, 1000))
    (s,) = step(xp, [Moments(1, 0, 0, 0)], [g], betas=betas, **options)
    return s.theta.value[()]


@erratum(
    kind="wrong",
    source=Source("000", "9.2", 137),
    printed=r"\text{Adam with L2: } \theta_t = \theta_{t-1} - \eta \frac{\hat{m}_t}{\sqrt{\hat{v}_t} + "
    r"\epsilon} - \eta \lambda \theta_{t-1}",
    corrected=r"\text{that is AdamW; with L2 } \nabla_\theta \mathcal{L} + \lambda \theta_{t-1} \text{ "
    r"takes the place of } \nabla_\theta \mathcal{L} \text{ in (7) and (8)}",
)
def _l2_printed_as_adamw() -> Evidence:
    eta = decay = sp.Rational(1, 10)
    printed = 1 - eta - eta * decay
    actual = _numbers(adam, 1, lr=eta, eps=0, weight_decay=decay)
    return Evidence(
        "θ = 1, first gradient 1, η = λ = 0.1, ε = 0",
        printed,
        actual,
        letters={"dL/dtheta": 3, "lambda": decay, "theta": [5, 7], "t": 2},
        values=(3 + decay * 5,),
    )


@erratum(
    kind="contradictory",
    source=Source("004", "3.5", 447),
    printed=r"\text{AdamW … decouples weight decay from learning rate}",
    corrected=r"\text{from the gradient and its averages; in 000, line 142, a step decays by } \eta "
    r"\lambda",
)
def _decoupled_from_the_rate() -> Evidence:
    shrunk = [_numbers(adamw, 0, lr=sp.Rational(k, 10), eps=1, weight_decay=sp.Rational(1, 10)) for k in (1, 2)]
    return Evidence(
        "θ = 1, gradient 0, λ = 0.1: what is left after a step, at η = 0.1 and at η = 0.2",
        shrunk[0],
        shrunk[1],
        letters={"eta": 1, "lambda": 2},
        values=(2,),
    )


@erratum(
    kind="imprecise",
    source=Source("004", "3.5", 442),
    printed=r"\theta_{t+1} = \theta_t - \eta \frac{m_t / (1-\beta_1^t)}{\sqrt{v_t / (1-\beta_2^t)} + "
    r"\epsilon} \text{ (like AdamW)}",
    corrected=r"\text{this is Adam; AdamW also takes off } \eta \lambda \theta_t",
)
def _adamw_without_decay() -> Evidence:
    options = {"lr": sp.Rational(1, 10), "eps": 1}
    printed = _numbers(adam, 0, **options)
    actual = _numbers(adamw, 0, weight_decay=sp.Rational(1, 100), **options)
    return Evidence(
        "θ = 1, gradient 0, η = 0.1, λ = 0.01",
        printed,
        actual,
        letters={"eta": sp.Rational(1, 10), "lambda": sp.Rational(1, 100), "theta": [1], "t": 1},
        values=(printed - actual,),
    )


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    options = {"betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": float(rng.uniform(0, 0.1))}
    return {**sample_states(rng), "lr": float(rng.uniform(0, 1)), **options}


_ASSUMPTIONS = (
    *ASSUMPTIONS,
    Assumption("the weight decay is not negative", lambda a: a["weight_decay"] >= 0),
    Assumption("the decay does not turn a parameter around", lambda a: a["lr"] * a["weight_decay"] < 1),
)
_SYMBOLS = (
    Symbol(r"\theta_t", r"\mathbb{R}^n", "the parameters"),
    Symbol(r"\lambda", r"\mathbb{R}_{\ge 0}", "weight decay"),
    Symbol(r"\eta", r"\mathbb{R}_{\ge 0}", "learning rate"),
    Symbol(
        r"\hat{m}_t, \hat{v}_t",
        r"\mathbb{R}^n, \mathbb{R}_{\ge 0}^n",
        "Adam's averages of gradients and of their squares, without bias",
    ),
)

EQUATIONS = (
    Equation(
        slug="adam-l2",
        number=None,
        title="Adam with L2 regularisation",
        statement=r"\theta_t = \theta_{t-1} - \eta \frac{\hat{m}_t}{\sqrt{\hat{v}_t} + \epsilon} - \eta \lambda "
        r"\theta_{t-1}",
        sources=(Source("000", "9.2", 137), Source("001", "9.2", 158)),
        symbols=_SYMBOLS,
        assumptions=_ASSUMPTIONS,
        sample=_sample,
        formula=adam,
        steps=(_penalty, _same_for_descent, _decay_of_l2, _any_step),
        costs=optimizer_costs("adam_l2"),
        errata=(_l2_printed_as_adamw,),
    ),
    Equation(
        slug="adamw",
        number=None,
        title="AdamW: decoupled weight decay",
        statement=r"\theta_t = (1 - \eta \lambda) \theta_{t-1} - \eta \frac{\hat{m}_t}{\sqrt{\hat{v}_t} + \epsilon}",
        sources=(Source("000", "9.2", 142), Source("001", "9.2", 167)),
        symbols=_SYMBOLS,
        assumptions=_ASSUMPTIONS,
        sample=_sample,
        formula=adamw,
        steps=(_as_printed, _decay_of_adamw, _any_decoupled_step, _geometric),
        costs=optimizer_costs("adamw"),
        errata=(_decoupled_from_the_rate, _adamw_without_decay),
    ),
)
