"""Bound on a step of Adam (document 000, section 9.1, lines 108 and 125)."""

from __future__ import annotations

from typing import Any

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.optimization.adam import run_adam
from veriformer.spec.optimization.averages import closed_form, weight_so_far
from veriformer.spec.proofs.indexed import dimension, index, positive, real, symbolic_sum, vector
from veriformer.spec.proofs.published import rounds_to


def adam_step_bound(xp: Any, t: int, *, lr: Any, betas: tuple[Any, Any] = (0.9, 0.999)) -> Any:
    """The largest step of any coordinate at step t ≥ 1, attained with ε = 0:

    η √(1 − β₂^t) / (1 − β₁^t) · (1 − β₁) / √(1 − β₂) · √(Σ_{k<t} (β₁² / β₂)^k), for 0 < β₂ < 1.
    """
    beta_1, beta_2 = (xp.asarray(beta) for beta in betas)
    ratio = beta_1 * beta_1 / beta_2
    powers = xp.asarray(1)
    geometric = xp.asarray(1)
    for _ in range(1, t):
        powers = powers * ratio
        geometric = geometric + powers
    root = xp.sqrt(weight_so_far(xp, beta_2, t) / (1 - beta_2) * geometric)
    return root * (1 - beta_1) / weight_so_far(xp, beta_1, t) * lr


def _betas() -> Any:
    return positive("beta_1 beta_2")


def _weights(i: Any) -> tuple[Any, Any]:
    """Return the weights of the gradient of step i in m_t, and of its square in v_t."""
    t, betas = dimension("t"), _betas()
    a, b = ((1 - beta) * beta ** (t - i) for beta in betas)
    return a, b


@step()
def _cauchy_schwarz() -> Identities:
    r"""A step is bounded by Cauchy and Schwarz: $(\sum_i a_i g_i)^2 \le \sum_i \frac{a_i^2}{b_i} \cdot \sum_i b_i
    g_i^2$: the difference is half a sum of squares. The left side is $m_t^2$, the last factor $v_t$.
    """
    a, b, g, (i, j), t = vector("a"), vector("b"), vector("g"), index("i j"), dimension("t")
    product = symbolic_sum(a[i] ** 2 / b[i], i, t) * symbolic_sum(b[i] * g[i] ** 2, i, t)
    gap = symbolic_sum(symbolic_sum(b[i] * b[j] * (a[i] / b[i] * g[j] - a[j] / b[j] * g[i]) ** 2, i, t), j, t) / 2
    yield product - symbolic_sum(a[i] * g[i], i, t) ** 2, gap


@step()
def _ratio_of_weights() -> Identities:
    r"""$\frac{a_i^2}{b_i} = \frac{(1 - \beta_1)^2}{1 - \beta_2} \left(\frac{\beta_1^2}{\beta_2}\right)^{t-i}$: the
    bound, before the two bias corrections.
    """
    i, t, (beta_1, beta_2) = index("i"), dimension("t"), _betas()
    a, b = _weights(i)
    yield a**2 / b, (1 - beta_1) ** 2 / (1 - beta_2) * (beta_1**2 / beta_2) ** (t - i)


@step()
def _geometric() -> Identities:
    r"""With $r = \beta_1^2 / \beta_2 < 1$ the sum telescopes to $(1 - r^t) / (1 - r)$, below $1 / (1 - r)$: however
    large the gradients, no step is longer than a constant times $\eta$.
    """
    k, r = index("k"), positive("r")
    yield (1 - r) * r**k, r**k - r ** (k + 1)


@step()
def _attained() -> Identities:
    r"""Gradients that grow as $g_i = (\beta_1 / \beta_2)^{t-i}$ attain it: both averages become the same geometric
    sum.
    """
    i, t, (beta_1, beta_2) = index("i"), dimension("t"), _betas()
    a, b = _weights(i)
    g, ratio = (beta_1 / beta_2) ** (t - i), (beta_1**2 / beta_2) ** (t - i)
    yield a * g, (1 - beta_1) * ratio
    yield b * g**2, (1 - beta_2) * ratio


@step(scope=Scope.ENUMERATED, detail="t = 2, any β")
def _attained_by_the_formula() -> Identities:
    """Adam's second step after two such gradients has exactly that length."""
    eta, betas = positive("eta"), _betas()
    gradients = [betas[0] / betas[1], sp.S.One]
    before, after = run_adam(gradients, lr=eta, betas=betas, eps=0)
    yield before.theta - after.theta, adam_step_bound(Symbolic(), 2, lr=eta, betas=betas).value[()]


@step(scope=Scope.NUMERIC, detail="exact roots, rounded as printed")
def _defaults() -> Identities:
    r"""For $\beta = (0.9, 0.999)$: at most $\eta$ at the first step, $1.04 \eta$ at the tenth, and in the limit $7.27
    \eta$; $(1 - \beta_1) / \sqrt{1 - \beta_2}$ alone, which the first step would have without bias correction, is 3.16.
    """
    beta_1, beta_2 = sp.Rational("0.9"), sp.Rational("0.999")
    largest = (1 - beta_1) / sp.sqrt((1 - beta_2) * (1 - beta_1**2 / beta_2))
    yield rounds_to(largest, "7.27")
    yield rounds_to((1 - beta_1) / sp.sqrt(1 - beta_2), "3.16")
    bounds = [adam_step_bound(Symbolic(), t, lr=1, betas=(beta_1, beta_2)).value[()] for t in (1, 10)]
    yield rounds_to(bounds[0], "1.00")
    yield rounds_to(bounds[1], "1.04")


def _corrected(beta: Any, value: Any) -> Any:
    t = dimension("t")
    return closed_form(t, beta, value) / closed_form(t, beta, lambda _: 1)


@step()
def _bumpy_road() -> Identities:
    r"""With one $\beta$ for both averages $\hat{m}^2 / \hat{v} = 1 / (1 + s^2 / \hat{m}^2)$, where $s^2$ is the
    weighted variance of the gradients: no step is longer than $\eta$, and the bumpier the road, compared with its
    slope, the smaller the step. With two, it is so in expectation: $E[\hat{m}]^2 / E[\hat{v}] = 1 / (1 + \sigma^2 /
    \mu^2)$.
    """
    g, beta = vector("g"), positive("beta")
    mean = _corrected(beta, lambda i: g[i])
    spread = _corrected(beta, lambda i: (g[i] - mean) ** 2)
    yield mean**2 / _corrected(beta, lambda i: g[i] ** 2), 1 / (1 + spread / mean**2)
    # In expectation, for gradients μ ± σ: E[m̂]² over E[v̂], for any two β.
    mu, sigma = positive("mu sigma")
    yield mu**2 / (((mu - sigma) ** 2 + (mu + sigma) ** 2) / 2), 1 / (1 + sigma**2 / mu**2)


@erratum(
    kind="imprecise",
    source=Source("000", "9.1", 129),
    printed=r"\text{Starts cautiously but gets more confident over time (bias correction)}",
    corrected=r"\text{with bias correction the first step already has the full length } \eta; "
    r"\text{ what starts cautiously is warmup (10)}",
)
def _cautious_start() -> Evidence:
    betas = (sp.Rational(9, 10), sp.Rational(999, 1000))
    states = run_adam([sp.Integer(3)] * 10, lr=1, betas=betas, eps=0)
    first, last = real("theta") - states[0].theta, states[-2].theta - states[-1].theta
    return Evidence(
        "the gradient 3 at every step, ε = 0: the first step over the tenth",
        "less than 1",
        first / last,
        letters={"eta": 1},
    )


EQUATIONS = (
    Equation(
        slug="adam-step-size",
        number=None,
        title="The size of Adam's steps",
        statement=r"\text{If the road has been very bumpy (high variance in gradients), take smaller steps}",
        sources=(Source("000", "9.1", 108), Source("001", "9.1", 119)),
        symbols=(
            Symbol(r"\beta_1, \beta_2", "[0, 1)", "the weights of the averages", "the second is not zero"),
            Symbol(r"\eta", r"\mathbb{R}_{\ge 0}", "learning rate"),
            Symbol("a_i, b_i", r"\mathbb{R}_{> 0}", "weights of gradient i in the first, and in the second average"),
        ),
        assumptions=(
            Assumption(
                "both β are below 1, the second is positive", lambda a: 0 <= a["betas"][0] < 1 > a["betas"][1] > 0
            ),
            Assumption("there is a step", lambda a: a["t"] >= 1),
        ),
        sample=lambda rng: {"t": int(rng.integers(1, 20)), "lr": float(rng.uniform(0, 1)), "betas": (0.9, 0.999)},
        formula=adam_step_bound,
        steps=(
            _cauchy_schwarz,
            _ratio_of_weights,
            _geometric,
            _attained,
            _attained_by_the_formula,
            _defaults,
            _bumpy_road,
        ),
        errata=(_cautious_start,),
    ),
)
