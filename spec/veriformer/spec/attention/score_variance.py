"""Why scores are divided by √d_k: the variance of a dot product (equation 24b)."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import delta, dimension, index, positive, real, symbolic_sum
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic


def score_variance(xp: Any, d_k: Any, sigma: Any, tau: Any, mu: Any = 0, nu: Any = 0) -> Any:
    """Var(q · k) = d_k (σ²τ² + σ²ν² + τ²μ²) for independent entries of q (mean μ, deviation σ) and k (ν, τ).

    With μ = ν = 0 and σ = τ this is d_k σ⁴ (24b).
    """
    sigma, tau, mu, nu = (xp.asarray(x) for x in (sigma, tau, mu, nu))
    q, k = sigma * sigma, tau * tau
    return (q * k + q * (nu * nu) + k * (mu * mu)) * d_k


def _moment(mean: Any, deviation: Any, a: Any, b: Any) -> Any:
    """E[q_a q_b] of independent entries: μ², and σ² more where a = b."""
    return mean**2 + delta(a, b) * deviation**2


def _second_moment(mu: Any, nu: Any) -> Any:
    (a, b), d = index("a b"), dimension("d")
    sigma, tau = positive("sigma tau")
    return symbolic_sum(symbolic_sum(_moment(mu, sigma, a, b) * _moment(nu, tau, a, b), a, d), b, d)


@step()
def _general() -> Identities:
    r"""$E[(\sum_a q_a k_a)^2] = \sum_{ab} E[q_a q_b] E[k_a k_b]$ by independence, with $E[q_a q_b] = \mu^2 +
    \delta_{ab} \sigma^2$. Less the square of the mean $d_k \mu \nu$ that is $d_k (\sigma^2 \tau^2 + \sigma^2 \nu^2 +
    \tau^2 \mu^2)$.
    """
    (mu, nu), (sigma, tau) = real("mu nu"), positive("sigma tau")
    d = dimension("d")
    variance = _second_moment(mu, nu) - (d * mu * nu) ** 2
    yield variance, d * (sigma**2 * tau**2 + sigma**2 * nu**2 + tau**2 * mu**2)


@step()
def _zero_mean() -> Identities:
    r"""For zero means and equal deviations: $d_k \sigma^4$."""
    d, sigma = dimension("d"), positive("sigma")
    yield _second_moment(0, 0).subs(positive("tau"), sigma), d * sigma**4


@step()
def _scaled() -> Identities:
    r"""Divided by $\sqrt{d_k}$ the scores have variance $\sigma^4$, whatever $d_k$ is."""
    d, sigma = dimension("d"), positive("sigma")
    yield _second_moment(0, 0).subs(positive("tau"), sigma) / sp.sqrt(d) ** 2, sigma**4


@step(scope=Scope.ENUMERATED, detail="d_k ≤ 2, any means and deviations")
def _formula() -> Identities:
    """The formula is the variance over all outcomes of two-valued entries."""
    # Every outcome of coins q, k ∈ {μ ± σ} × {ν ± τ}, each equally likely: the definition of the variance.
    (mu, nu), (sigma, tau) = real("mu nu"), positive("sigma tau")
    for d in (1, 2):
        scores = [
            sum((mu + sign[2 * c] * sigma) * (nu + sign[2 * c + 1] * tau) for c in range(d))
            for sign in product((-1, 1), repeat=2 * d)
        ]
        mean = sum(scores) / len(scores)
        variance = sum((s - mean) ** 2 for s in scores) / len(scores)
        yield variance, score_variance(TowerArithmetic(), d, sigma, tau, mu, nu).value[()]


def _variance_of_products(outcomes: Iterable[tuple[int, ...]]) -> Fraction:
    scores = [Fraction(q * k) for q, k in outcomes]
    mean = sum(scores, Fraction(0)) / len(scores)
    return sum(((s - mean) ** 2 for s in scores), Fraction(0)) / len(scores)


@step()
def _any_width() -> Identities:
    r"""The formula computes $d_k \sigma^4$ for queries and keys of one deviation, for every width, and the variance
    shown above for any means and deviations.
    """
    xp, d, (sigma, tau), (mu, nu) = AnyLength(), dimension("d"), positive("sigma tau"), real("mu nu")
    yield computed(score_variance, xp, d, sigma, sigma).then(entry()), d * sigma**4
    general = computed(score_variance, xp, d, sigma, tau, mu, nu).then(entry())
    yield general, _second_moment(mu, nu) - (d * mu * nu) ** 2


@erratum(
    kind="imprecise",
    source=Source("002", "5.2", 676),
    printed=r"\text{If } Q, K \text{ have i.i.d. entries with variance } \sigma^2 \text{, then } "
    r"\text{Var}(QK^T) = d_k \sigma^4",
    corrected=r"\text{with means } \mu, \nu \text{ of } Q, K: \text{Var} = "
    r"d_k (\sigma^4 + \sigma^2 (\mu^2 + \nu^2))",
)
def _variance_needs_zero_mean() -> Evidence:
    actual = _variance_of_products(product((0, 2), repeat=2))
    return Evidence(
        "d_k = 1, entries 0 or 2 with equal chance, so σ² = 1",
        Fraction(1),
        actual,
        letters={"Q": 0, "K": 0, "sigma": 2, "mu": 5, "nu": 7, "d_k": 3}
        | {"Var": score_variance(Symbolic(), 3, 2, 2, 5, 7).value[()]},
    )


@erratum(
    kind="imprecise",
    source=Source("002", "5.2", 676),
    printed=r"\text{If } Q, K \text{ have i.i.d. entries}",
    corrected=r"\text{the entries of } Q \text{ must also be independent of those of } K",
)
def _variance_needs_independence() -> Evidence:
    actual = _variance_of_products([(-1, -1), (1, 1)])
    return Evidence("d_k = 1, entries ±1 and K = Q, so σ² = 1", Fraction(1), actual, letters={"Q": 0, "K": 0})


@erratum(
    kind="wrong",
    source=Source("002", "5.2", 681),
    printed=r"\sigma \text{: This represents the variance}",
    corrected=r"\sigma \text{ is the standard deviation; the variance is } \sigma^2",
)
def _sigma_is_not_the_variance() -> Evidence:
    actual = _variance_of_products(product((-2, 2), repeat=2))
    return Evidence(
        "d_k = 1, entries ±2, whose variance is 4, taken as σ in d_k σ⁴",
        Fraction(4) ** 4,
        actual,
        letters={"sigma": 2},
        values=(4,),
    )


@erratum(
    kind="imprecise",
    source=Source("004", "3.2", 355),
    printed=r"\text{division by } \sqrt{d_k} \text{ keeps the scale near zero mean and unit variance}",
    corrected=r"\text{it gives unit variance where } \sigma = 1 \text{ and the means are zero; "
    r"a mean becomes } \sqrt{d_k} \mu \nu",
)
def _scaling_keeps_the_mean() -> Evidence:
    d_k, mu, nu = 4, 1, 1
    return Evidence(
        "d_k = 4, entries of mean 1: mean of the scaled scores",
        0,
        Fraction(d_k * mu * nu, 2),
        letters={"sigma": 1, "d_k": d_k, "mu": 3, "nu": 5},
        values=(Fraction(d_k * 3 * 5, 2),),
    )


@erratum(
    kind="imprecise",
    source=Source("004", "3.2", 356),
    printed=r"\text{Without it, early training can produce exploding attention weights}",
    corrected=r"\text{the scores can grow without bound; a weight stays below 1, and one of them nears it}",
)
def _weights_do_not_explode() -> Evidence:
    s = sp.Symbol("s", positive=True)
    actual = sp.limit(sp.exp(s) / (1 + sp.exp(s)), s, sp.oo)
    return Evidence("the larger of two weights as its score grows without bound", sp.oo, actual)


@erratum(
    slug="of-the-quotient",
    kind="imprecise",
    source=Source("004", "1, Derivation Insight", 38),
    printed=r"\text{Dividing by } \sqrt{d_k} \text{ ensures that } \mathrm{Var}(QK^\top) \text{ remains roughly "
    r"constant}",
    corrected=r"\mathrm{Var}(QK^\top / \sqrt{d_k}) \text{ does; } \mathrm{Var}(QK^\top) \text{ stays } d_k \sigma^4",
)
def _of_the_quotient() -> Evidence:
    signs = list(product((-1, 1), repeat=4))
    scores = [a * c + b * e for a, b, c, e in signs]
    twos = np.array([(2 * a, 2 * b) for a, b in product((-1, 1), repeat=2)], dtype=object)
    total = score_variance(Symbolic(), 2, 2, 2).value[()]
    return Evidence(
        "d_k = 2, entries ±1: Var(QKᵀ)",
        1,
        Fraction(sum(s * s for s in scores), len(scores)),
        letters={"Q": twos, "K": twos, "Var": np.var, "d_k": 2, "sigma": 2},
        values=(total / 2, total, total),
    )


@erratum(
    kind="imprecise",
    source=Source("004", "1", 32),
    printed=r"\text{The scaling factor } \sqrt{d_k} \text{ … preventing the softmax from becoming too sharp as } d_k "
    r"\text{ grows}",
    corrected=r"\text{so it is for independent entries of mean zero; of a key that is the query, with entries of size "
    r"one, it grows, as } \mathbf{q} \cdot \mathbf{q} / \sqrt{d_k} = \sqrt{d_k}",
)
def _own_key_gets_sharper() -> Evidence:
    def larger(d_k: int) -> Any:
        q = np.array([(-1) ** c for c in range(d_k)], dtype=object)
        own, opposite = (q @ key / sp.sqrt(d_k) for key in (q, -q))
        return sp.N(1 / (1 + sp.exp(opposite - own)), 4)

    q = np.array([1, -1, 1, -1], dtype=object)
    return Evidence(
        "entries ±1, the keys q and −q: the larger weight at d_k = 16, as at d_k = 4",
        larger(4),
        larger(16),
        letters={"q": q, "d_k": 4},
    )


EQUATIONS = (
    Equation(
        slug="score-variance",
        number="24b",
        title="The variance of the scores",
        statement=r"\text{Var}(QK^T) = d_k \sigma^4",
        sources=(Source("002", "5.2", 678), Source("004", "1", 37)),
        symbols=(
            Symbol("d_k", r"\mathbb{N}", "head dimension"),
            Symbol(r"\sigma, \tau", r"\mathbb{R}_{\ge 0}", "standard deviations of the entries of Q and of K"),
            Symbol(r"\mu, \nu", r"\mathbb{R}", "their means", "zero in the statement, which does not say so"),
        ),
        assumptions=(
            Assumption("all entries of Q and K are independent of each other", lambda a: True),
            Assumption("the entries have finite deviations", lambda a: a["sigma"] >= 0 and a["tau"] >= 0),
            Assumption("their means are zero", lambda a: a.get("mu", 0) == a.get("nu", 0) == 0),
        ),
        sample=lambda rng: {
            "d_k": int(rng.integers(1, 9)),
            "sigma": float(rng.uniform(0.1, 3)),
            "tau": float(rng.uniform(0.1, 3)),
        },
        formula=score_variance,
        steps=(_general, _zero_mean, _scaled, _any_width, _formula),
        errata=(
            _variance_needs_zero_mean,
            _variance_needs_independence,
            _sigma_is_not_the_variance,
            _scaling_keeps_the_mean,
            _weights_do_not_explode,
            _of_the_quotient,
            _own_key_gets_sharper,
        ),
    ),
)
