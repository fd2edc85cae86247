"""Dropout: some entries become zero by chance, and the others grow to make up for it (equation 46)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.attention.attention import attention
from veriformer.spec.costs import elementwise
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.proofs.any_length import AnyLength, entry, mask
from veriformer.spec.proofs.indexed import delta, dimension, index, positive, real, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic

Mask = NDArray[np.bool_]


def dropout(xp: Any, x: Any, p: float, *, keep: Mask | None = None) -> Any:
    """x / (1 − p) where `keep`, else 0; with p = 1 all zeros, and x itself for `keep=None`, outside training.

    keep has the shape of x, and each of its entries is true with probability 1 − p, independently of all others.
    """
    if keep is None:
        return x
    return xp.where(keep, x, 0) / (1 if p == 1 else 1 - xp.asarray(p))


def dropout_vjp(xp: Any, x: Any, p: float, g: Any, *, keep: Mask | None = None) -> Any:
    """dx = dropout(g) with the same mask: what was dropped has no gradient."""
    return dropout(xp, g, p, keep=keep)


def expected(f: Any, p: Any) -> Any:
    """E f(m) for the factor m of one entry: 1 / (1 − p) with probability 1 − p, else 0."""
    return (1 - p) * f(1 / (1 - p)) + p * f(sp.S.Zero)


def factor_moment(a: Any, b: Any, p: Any) -> Any:
    """E m_a m_b of independent factors: 1, and p / (1 − p) more where a = b."""
    return 1 + delta(a, b) * p / (1 - p)


@step()
def _mean() -> Identities:
    r"""With the factor $\frac{1}{1 - p}$ on what is kept, $E[m x] = x$: outside training nothing has to be scaled.
    Without it the mean would be $(1 - p) x$.
    """
    x, p = real("x p")
    yield computed(expected, lambda m: m * x, p), x
    # Without the factor: what is kept, times its chance.
    yield (1 - p) * x, computed(expected, lambda m: m * x, p).then(lambda mean: (1 - p) * mean)


@step()
def _variance() -> Identities:
    r"""$\text{Var}(m x) = \frac{p}{1 - p} x^2$, so that $E[m_a m_b] = 1 + \delta_{ab} \frac{p}{1-p}$."""
    x, p = real("x p")
    yield expected(lambda m: (m * x - x) ** 2, p), x**2 * p / (1 - p)
    yield expected(lambda m: m**2, p), factor_moment(0, 0, p)
    yield expected(lambda m: m, p) ** 2, factor_moment(0, 1, p)


@step()
def _output() -> Identities:
    r"""An output $\sum_j m_j A_j v_j$ keeps its mean, and gets the variance $\frac{p}{1 - p} \sum_j A_j^2 v_j^2$."""
    (a, b), n, p = index("a b"), dimension("n"), real("p")
    w, v = vector("A"), vector("v")
    square = symbolic_sum(symbolic_sum(factor_moment(a, b, p) * w[a] * v[a] * w[b] * v[b], a, n), b, n)
    yield square - symbolic_sum(w[a] * v[a], a, n) ** 2, p / (1 - p) * symbolic_sum(w[a] ** 2 * v[a] ** 2, a, n)


@step()
def _row_sum() -> Identities:
    r"""So does the sum of a row of weights: its mean stays 1, its variance is $\frac{p}{1 - p} \sum_j A_j^2$, least for
    even weights, $\frac{p}{(1 - p) n}$. The weights are not normalised again.
    """
    (a, b), n, p = index("a b"), dimension("n"), real("p")
    w = vector("A")
    square = symbolic_sum(symbolic_sum(factor_moment(a, b, p) * w[a] * w[b], a, n), b, n)
    yield square - symbolic_sum(w[a], a, n) ** 2, p / (1 - p) * symbolic_sum(w[a] ** 2, a, n)
    # With ΣA = 1 this says ΣA² = 1/n + Σ(A − 1/n)².
    even = symbolic_sum((w[a] - 1 / n) ** 2, a, n)
    yield symbolic_sum(w[a] ** 2, a, n), even + (2 * symbolic_sum(w[a], a, n) - 1) / n


def _masks() -> list[Mask]:
    return [np.array([bool(k & 1), bool(k & 2)]) for k in range(4)]


_any_vjp = vjp_step(lambda: pullbacks(dropout, dropout_vjp, {"x": "n", "p": positive("p")}, keep=mask("b", "n")))


@step(scope=Scope.ENUMERATED, detail="one query, all masks of 2 keys, every p")
def _in_attention() -> Identities:
    """In attention it acts on the weights, after softmax and before the values."""
    for keep in _masks():
        xp, p = TowerArithmetic(), real("p")
        q, k, v = xp.symbols("q", 1, 1, 1, 1), xp.symbols("k", 1, 1, 2, 1), xp.symbols("v", 1, 1, 2, 1)
        o = attention(xp, q, k, v, keep=keep, dropout_p=p).value.ravel()[0]
        e = [sp.exp(q.value.ravel()[0] * key) for key in k.value.ravel()]
        dropped = dropout(xp, xp.asarray([x / sum(e) for x in e]), p, keep=keep).value
        yield xp.in_full(o), sum(dropped * v.value.ravel())


@step()
def _any_length() -> Identities:
    r"""The formula multiplies by $m = b / (1 - p)$, b = 1 for what is kept and 0 for what is dropped, for every n."""
    xp, n, i, p = AnyLength(), dimension("n"), index("i"), real("p")
    kept = computed(dropout, xp, xp.array("A", n), p, keep=xp.array("b", n)).then(entry(i))
    yield kept, vector("A")[i] * vector("b")[i] / (1 - p)


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    p = float(rng.uniform(0, 0.9))
    return {"x": rng.normal(size=(2, 3)), "p": p, "keep": rng.random((2, 3)) >= p}


SYMBOLS = (
    Symbol("p", "[0, 1)", "the probability that an entry is dropped"),
    Symbol("m", r"\{0, \frac{1}{1 - p}\}", "the factor of an entry", "independent of all others"),
)
PROBABILITY = Assumption("p is a probability below one", lambda a: 0 <= a["p"] < 1)

EQUATIONS = (
    Equation(
        slug="dropout",
        number="46",
        title="Dropout, and attention dropout",
        statement=r"A_{\text{dropped}} = \text{Dropout}(\text{softmax}(QK^T/\sqrt{d_k}))",
        sources=(Source("000", "11.1", 381), Source("001", "11.1", 489)),
        symbols=(*SYMBOLS, Symbol("A", r"[0, 1]^{n \times n}", "attention weights, of which a row sums to one")),
        assumptions=(PROBABILITY, Assumption("the mask covers the entries", lambda a: a["keep"].shape == a["x"].shape)),
        sample=_sample,
        formula=dropout,
        vjp=dropout_vjp,
        steps=(_mean, _variance, _output, _row_sum, _any_length, _in_attention, _any_vjp),
        costs=elementwise(2, arrays=3),
    ),
)
