"""The exponential average, its closed form, its bias and its noise: what momentum and Adam are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import optimizer_costs
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.proofs.indexed import dimension, index, positive, real, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed


def average(xp: Any, mean: Any, value: Any, beta: Any) -> Any:
    """β m + (1 − β) x: an exponential average after one more value x (equations 5, 7 and 8)."""
    return mean * beta + value * (1 - xp.asarray(beta))


def weight_so_far(xp: Any, beta: Any, t: int) -> Any:
    """1 − β^t: what the weights of t ≥ 1 values sum to. Dividing an average by it corrects the average's bias."""
    return 1 - xp.power(xp.asarray(beta), t)


def corrected_average(xp: Any, values: Any, beta: Any) -> Any:
    """m_t / (1 − β^t) over values [t, …] in their order, t ≥ 1, with m_0 = 0: a weighted mean of the values."""
    m = xp.asarray(np.zeros(values.shape[1:]))
    for i in range(values.shape[0]):
        m = average(xp, m, values[i], beta)
    return m / weight_so_far(xp, beta, values.shape[0])


def closed_form(t: Any, beta: Any, value: Any) -> Any:
    """(1 − β) Σ_{i=1}^t β^{t−i} value(i), the expression that proofs for every t start from."""
    i = sp.Dummy("i", integer=True)
    return (1 - beta) * symbolic_sum(beta ** (t - i) * value(i), i, t)


def _gradient(i: Any) -> Any:
    return vector("g")[i]


@step()
def _closed_form() -> Identities:
    r"""By induction $\mathbf{m}_t = (1 - \beta) \sum_{i=1}^t \beta^{t-i} \mathbf{g}_i$: it holds at $t = 1$, and one
    more step multiplies every weight by $\beta$ and adds $(1 - \beta) \mathbf{g}_{t+1}$.
    """
    t, beta = dimension("t"), positive("beta")
    g = vector("g")
    yield closed_form(1, beta, _gradient).doit(), (1 - beta) * g[1]
    yield closed_form(t + 1, beta, _gradient), beta * closed_form(t, beta, _gradient) + (1 - beta) * g[t + 1]


@step(scope=Scope.ENUMERATED, detail="t ≤ 4, any values")
def _formula() -> Identities:
    """The average computed step by step is the closed form, divided by the sum of its weights."""
    beta, g = real("beta"), vector("g")
    for t in range(1, 5):
        m = sum((1 - beta) * beta ** (t - i) * g[i] for i in range(1, t + 1))
        xp = Symbolic()
        yield corrected_average(xp, xp.asarray([g[i] for i in range(1, t + 1)]), beta).value[()], m / (1 - beta**t)


@step(scope=Scope.NUMERIC, detail="the two printed values of β")
def _shares() -> Identities:
    r"""After a further value the average keeps, for $\beta = 0.9$, 90 % of what it was and takes 10 % of the value, $1
    - \beta = 0.1$; for $\beta = 0.999$ it keeps 99.9 %.
    """
    xp = Symbolic()
    m, g = real("m g")
    for beta, kept in (("0.9", "90"), ("0.999", "99.9")):
        after = average(xp, xp.asarray(m), xp.asarray(g), sp.Rational(beta)).value[()]
        yield computed(sp.diff, 100 * after, m), sp.Rational(kept)
        yield computed(sp.diff, 100 * after, g), sp.Add(100, -sp.Rational(kept), evaluate=False)


def _gap(t: Any) -> Any:
    """Return the sum of the weights less 1 − β^t."""
    beta = positive("beta")
    return closed_form(t, beta, lambda _: 1) - (1 - beta**t)


@step()
def _weights_sum() -> Identities:
    r"""Each weight is $(1 - \beta) \beta^{t-i} = \beta^{t-i} - \beta^{t-i+1}$, so their sum telescopes to $1 - \beta^t$
    (by induction: the gap between the two is zero at $t = 1$ and is multiplied by $\beta$ at each step). It starts at
    $1 - \beta$, grows, and approaches 1. The missing $\beta^t$ is what $\mathbf{m}_0 = 0$ still weighs.
    """
    i, t, beta = index("i"), dimension("t"), positive("beta")
    yield (1 - beta) * beta ** (t - i), beta ** (t - i) - beta ** (t - i + 1)
    yield _gap(1).doit(), 0
    yield _gap(t + 1), beta * _gap(t)


@step()
def _bias() -> Identities:
    r"""Values of one expectation $\mu$ give $E[\mathbf{m}_t] = \mu \cdot (1 - \beta) \sum_i \beta^{t-i} = (1 - \beta^t)
    \mu$. Divided by $1 - \beta^t$ the average is unbiased.
    """
    t, beta, mu = dimension("t"), positive("beta"), real("mu")
    yield closed_form(t, beta, lambda _: mu), (1 - beta**t + _gap(t)) * mu


@step()
def _drift() -> Identities:
    r"""Where the expectation drifts, what is left after the division is the weighted mean of $\mu_i - \mu_t$: small as
    long as $\mu$ moves little within the memory.
    """
    t, beta, mu = dimension("t"), positive("beta"), vector("mu")
    gap = closed_form(t, beta, lambda i: mu[i] - mu[t])
    weights = closed_form(t, beta, lambda _: 1)
    yield closed_form(t, beta, lambda i: mu[i]) / weights, mu[t] + gap / weights


@step()
def _noise() -> Identities:
    r"""Independent values of variance $\sigma^2$: the squared weights telescope too, to $\text{Var}(\mathbf{m}_t) =
    \sigma^2 \frac{1 - \beta}{1 + \beta} (1 - \beta^{2t})$. That is how an average smooths noise; for $\beta = 0.9$ the
    variance falls to a nineteenth.
    """
    i, t, (beta, sigma) = index("i"), dimension("t"), positive("beta sigma")
    so_far = sigma**2 * (1 - beta) / (1 + beta) * beta ** (2 * (t - i))
    yield ((1 - beta) * beta ** (t - i)) ** 2 * sigma**2, so_far - so_far.subs(i, i - 1)
    yield so_far.subs(i, t) - so_far.subs(i, 0), sigma**2 * (1 - beta) / (1 + beta) * (1 - beta ** (2 * t))


@step()
def _samples() -> Identities:
    r"""Its noise is that of a plain mean of $\frac{(1 + \beta)(1 - \beta^t)}{(1 - \beta)(1 + \beta^t)}$ values: of a
    single one at $t = 1$, and of $\frac{1 + \beta}{1 - \beta}$ in the end.
    """
    t, beta = dimension("t"), positive("beta")
    squares = (1 - beta) / (1 + beta) * (1 - beta ** (2 * t))
    ratio = (1 + beta) * (1 - beta**t) / ((1 - beta) * (1 + beta**t))
    yield (1 - beta**t) ** 2 / squares, ratio
    yield ratio.subs(t, 1), 1


@step()
def _memory() -> Identities:
    r"""In the steady state the mean age of a value is $\sum_k (1 - \beta) k \beta^k = \beta / (1 - \beta)$ steps: 9 for
    0.9, 99 for 0.99, 999 for 0.999.
    """
    # Mean age of a value in the steady state: a_k = (1 − β) k β^k, again a difference of neighbours.
    k, beta = dimension("k"), positive("beta")
    rest = (k + beta / (1 - beta)) * beta**k
    yield (1 - beta) * k * beta**k, rest - rest.subs(k, k + 1)
    yield rest.subs(k, 0), beta / (1 - beta)


@erratum(
    kind="imprecise",
    source=Source("001", "9.1", 139),
    printed=r"\text{Correction factor:} \quad (1-\beta^t)",
    corrected=r"\text{the averages are divided by } (1-\beta^t) \text{, as 000 says in line 123}",
)
def _correction_factor() -> Evidence:
    beta, g = sp.Rational(9, 10), sp.S.One
    m = (1 - beta) * g
    return Evidence(
        "β = 0.9, t = 1, gradient 1: the average times the factor 1 − β^t",
        m * (1 - beta),
        m / (1 - beta),
        letters={"beta": beta, "t": 2},
        values=((1 - beta) * (1 + beta),),
    )


EQUATIONS = (
    Equation(
        slug="exponential-average",
        number=None,
        title="The exponential average and its bias",
        statement=r"\hat{\mathbf{m}}_t = \frac{\mathbf{m}_t}{1 - \beta^t}, \quad \mathbf{m}_0 = 0",
        sources=(Source("000", "9.1", 123), Source("001", "9.1", 138), Source("004", "3.5", 442)),
        symbols=(
            Symbol(r"\mathbf{g}_i", r"\mathbb{R}^n", "the value (a gradient, or its square) of step i"),
            Symbol(r"\beta", "[0, 1)", "how much of the average is kept at each step"),
            Symbol(r"\mathbf{m}_t", r"\mathbb{R}^n", "the average after t steps", "zero before the first"),
            Symbol("t", r"\mathbb{N}", "the number of values averaged", "at least 1"),
        ),
        assumptions=(
            Assumption("β is at least 0 and below 1", lambda a: 0 <= a["beta"] < 1),
            Assumption("there is at least one value", lambda a: a["values"].shape[0] > 0),
        ),
        sample=lambda rng: {
            "values": rng.normal(size=(int(rng.integers(1, 6)), 3)),
            "beta": float(rng.uniform(0, 0.99)),
        },
        formula=corrected_average,
        steps=(_closed_form, _shares, _weights_sum, _bias, _drift, _noise, _samples, _memory, _formula),
        costs=optimizer_costs("exponential_average"),
        errata=(_correction_factor,),
    ),
)
