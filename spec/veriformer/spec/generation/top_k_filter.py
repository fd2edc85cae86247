"""Top-k choice (document 003, section 12)."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import TOP_K
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.generation.choices import ranks
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import dimension, index, positive, real, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.scores.softmax import softmax, weight


def top_k_filter(xp: Any, logits: Any, k: int) -> Any:
    """The logits [..., V] with −∞ outside the k largest of the last axis; of equal ones the lower index is kept."""
    return xp.where(ranks(logits) < k, logits, -math.inf)


# Weights e^z whose sums and orders are exact, with ties.
WEIGHTS = ((1,), (2, 1), (3, 3), (1, 2, 3), (4, 1, 4), (2, 2, 2), (5, 1, 2, 1), (1, 3, 3, 1))


def logs(weights: tuple[int, ...]) -> NDArray[Any]:
    """Logits whose softmax is in proportion to these weights."""
    return np.array([sp.log(w) for w in weights], dtype=object)


@step()
def _renormalised() -> Identities:
    r"""A logit of $-\infty$ has weight 0, so softmax of the filtered logits is $p_i / \sum_{j} m_j p_j$ on the kept
    set: filtering and renormalising are one, for any set and any V.
    """
    z, kept, (i, j), n = vector("z"), vector("m"), index("i j"), dimension("n")
    filtered = kept[i] * sp.exp(z[i]) / symbolic_sum(kept[j] * sp.exp(z[j]), j, n)
    yield filtered, kept[i] * weight(i) / symbolic_sum(kept[j] * weight(j), j, n)


@step()
def _order() -> Identities:
    r"""The order of the probabilities is that of the logits, $\log(p_i / p_j) = z_i - z_j$, and stays under a
    temperature and a shift: neither changes which k are kept.
    """
    z, (i, j), c, t = vector("z"), index("i j"), real("c"), positive("T")
    yield t * ((z[i] / t + c) - (z[j] / t + c)), z[i] - z[j]
    yield sp.log(weight(i) / weight(j)), z[i] - z[j]


def kept(xp: Any, weights: tuple[int, ...], k: int) -> NDArray[np.bool_]:
    """Return the mask of the kept tokens of these weights."""
    return np.asarray(top_k_filter(xp, xp.asarray(logs(weights)), k).value != -sp.oo, dtype=bool)


@step(scope=Scope.ENUMERATED, detail="eight distributions of up to 4 tokens, with and without ties, every k")
def _exactly_k() -> Identities:
    """Exactly k survive, also where the k-th is tied: the lower index stays."""
    xp = Symbolic()
    for weights in WEIGHTS:
        for k in range(1, len(weights) + 1):
            yield computed(kept, xp, weights, k).then(lambda here: int(here.sum())), sp.Integer(k)


@step(scope=Scope.ENUMERATED, detail="the same, against every subset of k")
def _most_mass() -> Identities:
    """No other k tokens have more probability."""
    xp = Symbolic()
    for weights in WEIGHTS:
        for k in range(1, len(weights) + 1):
            mass = sum(w for w, b in zip(weights, kept(xp, weights, k), strict=True) if b)
            yield sp.Integer(mass), sp.Max(0, *map(sum, combinations(weights, k)), evaluate=False)


@step(scope=Scope.ENUMERATED, detail="the same")
def _formula() -> Identities:
    """Softmax of what is computed is the renormalised distribution."""
    xp = Symbolic()
    for weights in WEIGHTS:
        for k in range(1, len(weights) + 1):
            p, here = computed(softmax, xp, top_k_filter(xp, xp.asarray(logs(weights)), k)), kept(xp, weights, k)
            mass = sum(w for w, b in zip(weights, here, strict=True) if b)
            yield from entrywise(p, [sp.Rational(w * int(b), mass) for b, w in zip(here, weights, strict=True)])


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    size = int(rng.integers(1, 7))
    return {"logits": rng.normal(size=(2, size)), "k": int(rng.integers(1, size + 1))}


_SOURCE = "12, Mathematical Formulation"

EQUATIONS = (
    Equation(
        slug="top-k",
        number=None,
        title="Top-k sampling",
        statement=r"\text{next token} \sim \text{Categorical}(\text{top-k}(p, k))",
        sources=(Source("003", _SOURCE, 1489),),
        symbols=(
            Symbol("p", r"(0, 1]^V", "the probabilities of the next token"),
            Symbol("k", r"\{1, \dots, V\}", "how many tokens are kept"),
            Symbol("m_i", r"\{0, 1\}", "whether token i is kept"),
        ),
        assumptions=(
            Assumption("at least one token is kept", lambda a: a["k"] >= 1),
            Assumption("there are that many", lambda a: a["k"] <= a["logits"].shape[-1]),
        ),
        sample=_sample,
        steps=(_renormalised, _order, _exactly_k, _most_mass, _formula),
        costs=TOP_K,
    ),
)
