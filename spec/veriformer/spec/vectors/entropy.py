"""Entropy and divergence (documents 002, section 2.2.4, and 004, sections 2 and 4.6)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic.exact_inputs import exactly_equal
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import comparison
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, index, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic
from veriformer.spec.scores.softmax import weight


def kl_divergence(xp: Any, y: Any, p: Any) -> Any:
    """Σ_i y_i log(y_i / p_i) over the last axis, shape [...], with 0 log 0 = 0, for p_i > 0 where y_i > 0."""
    void = exactly_equal(y, 0)
    ratio = xp.where(void, 1, y) / xp.where(void, 1, p)
    return xp.sum(y * xp.log(ratio), axis=-1)


def kl_divergence_vjp(xp: Any, y: Any, p: Any, g: Any) -> tuple[Any, Any]:
    """dy = g (log(y / p) + 1) and dp = −g y / p, for y and p that are positive."""
    each = xp.reshape(g, (*y.shape[:-1], 1))
    return each * (xp.log(y / p) + 1), -(each * y / p)


def entropy(xp: Any, p: Any) -> Any:
    """−Σ_i p_i log p_i over the last axis, shape [...], with 0 log 0 = 0."""
    return -xp.sum(p * xp.log(xp.where(exactly_equal(p, 0), 1, p)), axis=-1)


def entropy_vjp(xp: Any, p: Any, g: Any) -> Any:
    """dp = −g (log p + 1), for positive p."""
    return -(xp.reshape(g, (*p.shape[:-1], 1)) * (xp.log(p) + 1))


def _positive(name: str) -> Any:
    return sp.IndexedBase(name, positive=True)


@step()
def _decomposition() -> Identities:
    """Cross entropy is the entropy of the truth and the divergence from it: only the latter depends on the prediction,
    so minimising either is one.
    """
    y, p, i, n = _positive("y"), _positive("p"), index("i"), dimension("n")
    cross = -symbolic_sum(y[i] * sp.log(p[i]), i, n)
    yield cross, -symbolic_sum(y[i] * sp.log(y[i]), i, n) + symbolic_sum(y[i] * sp.log(y[i] / p[i]), i, n)


@step()
def _not_negative() -> Identities:
    r"""$\log t \le t - 1$, as $d (\log t - t + 1) / d t = (1 - t) / t$ changes sign at 1. With $t = p_i / y_i$, $-D \le
    \sum_i y_i (p_i / y_i - 1) = \sum_i p_i - \sum_i y_i = 0$, so the divergence is never negative, and 0 only where p =
    y. Any n.
    """
    # log t ≤ t − 1 with t = p / y, for log t − (t − 1) is 0 at 1, where its slope 1/t − 1 changes sign.
    y, p, i, n = _positive("y"), _positive("p"), index("i"), dimension("n")
    yield symbolic_sum(y[i] * (p[i] / y[i] - 1), i, n), symbolic_sum(p[i], i, n) - symbolic_sum(y[i], i, n)
    t = sp.Symbol("t", positive=True)
    yield sp.diff(sp.log(t) - (t - 1), t), (1 - t) / t


@step()
def _most_even() -> Identities:
    r"""The divergence of p from the even distribution is $\log n - H(p)$: so no entropy exceeds $\log n$, that of n
    equal probabilities.
    """
    i, j, n = index("i"), index("j"), dimension("n")
    z = vector("z")
    log_p = z[i] - sp.log(symbolic_sum(sp.exp(z[j]), j, n))
    negative_entropy = symbolic_sum(weight(i) * log_p, i, n)
    yield symbolic_sum(weight(i) * (log_p - sp.log(1 / n)), i, n), sp.log(n) + negative_entropy


@step()
def _of_logits() -> Identities:
    r"""The entropy of softmax is $\log \sum_j e^{z_j} - \sum_i p_i z_i$."""
    z, (i, j), n = vector("z"), index("i j"), dimension("n")
    normaliser = sp.log(symbolic_sum(sp.exp(z[j]), j, n))
    found = -symbolic_sum(weight(i) * (z[i] - normaliser), i, n)
    yield found, normaliser - symbolic_sum(weight(i) * z[i], i, n)


@step()
def _any_length() -> Identities:
    """Divergence and entropy are computed as stated, for every n."""
    xp, n, i = AnyLength(), dimension("n"), index("i")
    y, p = vector("y"), vector("p")
    divergence = computed(kl_divergence, xp, xp.array("y", n), xp.array("p", n))
    yield divergence.then(entry()), symbolic_sum(y[i] * sp.log(y[i] / p[i]), i, n)
    of_p = computed(entropy, xp, xp.array("p", n))
    yield of_p.then(entry()), -symbolic_sum(p[i] * sp.log(p[i]), i, n)


@step()
def _any_vjp() -> Identities:
    """The vector-Jacobian product is the derivative that SymPy takes of the formula, for all sizes."""
    yield from pullbacks(kl_divergence, kl_divergence_vjp, {"y": "n d", "p": "n d"})
    yield from pullbacks(entropy, entropy_vjp, {"p": "n d"})


@erratum(
    kind="imprecise",
    source=Source("004", "4.6", 612),
    printed=r"\text{the divergence between predicted and true token distributions}",
    corrected=r"\text{the divergence of the prediction from the truth, which is not that of the truth from "
    r"the prediction}",
)
def _between_has_a_direction() -> Evidence:
    xp = TowerArithmetic()
    y, p = xp.asarray([sp.Rational(1, 2)] * 2), xp.asarray([sp.Rational(1, 4), sp.Rational(3, 4)])
    sides = [sp.expand_log(kl_divergence(xp, *pair).value[()], force=True) for pair in ((y, p), (p, y))]
    return Evidence("(1/2, 1/2) and (1/4, 3/4): the divergence one way and the other", *map(sp.simplify, sides))


@erratum(
    kind="imprecise",
    source=Source("004", "4.6", 612),
    printed=r"\text{Measures the divergence between predicted and true token distributions}",
    corrected=r"\text{the divergence and the entropy of the truth, which is 0 for one-hot targets only}",
)
def _cross_entropy_is_no_divergence() -> Evidence:
    xp = TowerArithmetic()
    even = xp.asarray([sp.Rational(1, 2)] * 2)
    return Evidence(
        "y = p = (1/2, 1/2): the cross entropy, called a divergence", sp.S.Zero, entropy(xp, even).value[()]
    )


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    n = int(rng.integers(1, 6))
    return {"y": rng.dirichlet(np.ones(n), size=2), "p": rng.dirichlet(np.ones(n), size=2)}


EQUATIONS = (
    Equation(
        slug="divergence",
        number=None,
        title="Cross entropy, entropy and divergence",
        statement=r"-\sum_i y_i \log p_i = -\sum_i y_i \log y_i + \sum_i y_i \log \frac{y_i}{p_i}",
        sources=(Source("004", "4.6", 612), Source("002", "2.2.4", 403), Source("004", "2.2", 146)),
        symbols=(
            Symbol(r"\mathbf{y}", "(0, 1]^n", "true probabilities", "sum to one"),
            Symbol(r"\mathbf{p}", "(0, 1]^n", "predicted probabilities", "sum to one"),
        ),
        assumptions=(
            Assumption("probabilities are positive", lambda a: bool((a["y"] > 0).all() and (a["p"] > 0).all())),
            Assumption("they are as many", lambda a: a["y"].shape == a["p"].shape),
        ),
        sample=_sample,
        formula=kl_divergence,
        vjp=kl_divergence_vjp,
        steps=(_decomposition, _not_negative, _most_even, _of_logits, _any_length, _any_vjp),
        costs=comparison(4),
        errata=(_cross_entropy_is_no_divergence, _between_has_a_direction),
    ),
)
