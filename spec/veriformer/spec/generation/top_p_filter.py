"""Nucleus (top-p) sampling (document 003, section 12)."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import TOP_P
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.generation.choices import exact_values, ranks
from veriformer.spec.generation.top_k_filter import WEIGHTS, logs
from veriformer.spec.proofs.indexed import dimension, index, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.published import holds
from veriformer.spec.scores.softmax import softmax, weight

_SOURCE = "12, Mathematical Formulation"


def top_p_filter(xp: Any, logits: Any, p: float) -> Any:
    """The logits [..., V] with −∞ outside the smallest set whose mass reaches p, always at least one token.

    The set takes the most probable tokens first, of equal ones the lower index; p = 1 keeps all. A token is kept where
    the mass before it is below p; where that mass meets p within rounding, either set is right.
    """
    if p >= 1:
        return xp.asarray(logits)
    rank = ranks(logits)
    reached = exact_values(mass_before(xp, logits)) >= exact_values(xp.asarray(p))
    dropped = np.asarray(reached, dtype=bool) & (rank > 0)
    return xp.where(dropped, -math.inf, logits)


def mass_before(xp: Any, logits: Any) -> Any:
    """The probability of all tokens that come before each, shape [..., V]: 0 for the most probable one."""
    rank, q = ranks(logits), softmax(xp, logits)
    falling = xp.take_along(q, np.argsort(rank, axis=-1), axis=-1)
    before = xp.concat([xp.asarray(0 * rank[..., :1]), xp.cumsum(falling)[..., :-1]], axis=-1)
    return xp.take_along(before, rank, axis=-1)


# Thresholds that some sets meet exactly, and some between.
_THRESHOLDS = tuple(Fraction(n, 12) for n in (0, 1, 3, 4, 6, 8, 9, 11, 12))


def _cases() -> list[tuple[tuple[int, ...], Fraction, NDArray[np.bool_]]]:
    xp = Symbolic()
    out: list[tuple[tuple[int, ...], Fraction, NDArray[np.bool_]]] = []
    for weights in WEIGHTS:
        for p in _THRESHOLDS:
            z = top_p_filter(xp, xp.asarray(logs(weights)), sp.Rational(p))
            out.append((weights, p, np.asarray(z.value != -sp.oo, dtype=bool)))
    return out


def _mass(weights: tuple[int, ...], chosen: Any) -> Fraction:
    return Fraction(sum(weights[i] for i in chosen), sum(weights))


@step(scope=Scope.ENUMERATED, detail="eight distributions of up to 4 tokens, nine thresholds, met exactly by some sets")
def _smallest() -> Identities:
    """No set of fewer tokens, of all subsets, has a mass of p; at p = 0 one token is kept."""
    for weights, p, kept in _cases():
        ids = range(len(weights))
        enough = [n for n in range(1, len(weights) + 1) if any(_mass(weights, s) >= p for s in combinations(ids, n))]
        yield sp.Integer(int(kept.sum())), sp.Min(*enough, 10**6, evaluate=False)


@step(scope=Scope.ENUMERATED, detail="the same")
def _reaches() -> Identities:
    """The mass of the set reaches p."""
    for weights, p, kept in _cases():
        yield holds(_mass(weights, np.flatnonzero(kept)) >= p)


@step(scope=Scope.ENUMERATED, detail="the same")
def _most_probable() -> Identities:
    """No other set of as many tokens has more mass: it is top-k, with a k that follows p."""
    for weights, _, kept in _cases():
        n = int(kept.sum())
        mass = sum(weights[i] for i in np.flatnonzero(kept))
        yield sp.Integer(mass), sp.Max(0, *map(sum, combinations(weights, n)), evaluate=False)


@step(scope=Scope.ENUMERATED, detail="eight distributions of up to 4 tokens")
def _mass_before() -> Identities:
    """A token is judged by the mass of the tokens before it, and ties stand in the order of indices."""
    xp = Symbolic()
    for weights in WEIGHTS:
        order = sorted(range(len(weights)), key=lambda i: -weights[i])
        found = computed(mass_before, xp, xp.asarray(logs(weights)))
        for k, i in enumerate(order):
            yield found.entry(i), sp.Rational(_mass(weights, order[:k]))


@step()
def _mass_left_out() -> Identities:
    r"""Renormalising adds to the kept tokens the mass of the others, $\sum_i (1 - m_i) p_i$: at most $1 - p$ of the
    probability is moved, for any V. Top-k gives no such bound.
    """
    # The distance in total variation between p and p renormalised on a set m (0 or 1) is the mass left out.
    kept, i, j, n = vector("m"), index("i"), index("j"), dimension("n")
    inside = symbolic_sum(kept[j] * weight(j), j, n)
    gained = symbolic_sum(kept[i] * weight(i) / inside - kept[i] * weight(i), i, n)
    yield gained, symbolic_sum((1 - kept[i]) * weight(i), i, n)


@erratum(
    kind="wrong",
    source=Source("003", _SOURCE, 1506),
    printed=r"\{i : \sum_{j \in \text{top}(p)} p_j \leq p\}",
    corrected=r"\text{the smallest set of most probable tokens with } \sum_j p_j \geq p",
)
def _reaches_not_stays_below() -> Evidence:
    weights, p = (3, 2), Fraction(9, 10)
    below = sum(_mass(weights, range(n)) <= p for n in (1, 2))
    xp = Symbolic()
    z = top_p_filter(xp, xp.asarray(logs(weights)), sp.Rational(p))
    kept = int(sum(e != -sp.oo for e in z.value))
    return Evidence(
        "probabilities (0.6, 0.4), threshold 0.9: how many tokens are kept",
        below,
        kept,
        letters={"p": p, "p_": [Fraction(3, 5), Fraction(2, 5)], "n": range(1, 3)},
        values=(lambda letters: letters["n"] >= kept,),
    )


EQUATIONS = (
    Equation(
        slug="top-p",
        number=None,
        title="Nucleus (top-p) sampling",
        statement=r"\text{next token} \sim \text{Categorical}(\{i : \sum_{j \in \text{top}(p)} p_j \leq p\})",
        sources=(Source("003", _SOURCE, 1506), Source("003", _SOURCE, 1510)),
        symbols=(
            Symbol("p_j", "(0, 1]", "the probability of token j"),
            Symbol("p", "[0, 1]", "the threshold; the source gives both one letter"),
            Symbol("m_i", r"\{0, 1\}", "whether token i is kept"),
        ),
        assumptions=(
            Assumption("the threshold is a probability", lambda a: 0 <= a["p"] <= 1),
            Assumption("every logit is a real number", lambda a: bool(np.isfinite(a["logits"]).all())),
        ),
        sample=lambda rng: {"logits": rng.normal(size=(2, int(rng.integers(1, 7)))), "p": float(rng.uniform(0, 1))},
        steps=(_smallest, _reaches, _most_probable, _mass_before, _mass_left_out),
        costs=TOP_P,
        errata=(_reaches_not_stays_below,),
    ),
)
