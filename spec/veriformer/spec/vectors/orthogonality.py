"""Near-orthogonality of random vectors, and its rate (document 002, section 4.1)."""

from __future__ import annotations

from itertools import product
from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import delta, dimension, index, positive, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed


def mean_squared_cosine(xp: Any, d: int) -> Any:
    """E cos² θ = 1/d of a fixed vector and one whose direction is uniform on the sphere in d dimensions."""
    return 1 / xp.asarray(d)


@step()
def _shares() -> Identities:
    r"""The squares of a unit vector's d entries sum to one; where no axis is preferred they have one mean m, and
    $\sum_c m = d m = 1$ makes it $1/d$.
    """
    c, d, m = index("c"), dimension("d"), positive("m")
    yield symbolic_sum(m, c, d) / d, m
    yield symbolic_sum(1 / d, c, d), 1


@step()
def _rate() -> Identities:
    r"""Entries of different axes are uncorrelated, for the sign of one may be changed. So $E[\cos^2 \theta] = \sum_{ab}
    u_a u_b \delta_{ab} / (d \|\mathbf{u}\|^2) = 1/d$, for any u and d: the cosine is of the order of $1 / \sqrt{d}$,
    and $P(|\cos \theta| \ge \varepsilon) \le 1 / (d \varepsilon^2)$ (Chebyshev).
    """
    u, (a, b), d = vector("u"), index("a b"), dimension("d")
    squared = symbolic_sum(u[a] ** 2, a, d)
    moment = symbolic_sum(symbolic_sum(u[a] * u[b] * delta(a, b) / d, a, d), b, d)
    yield moment / squared, computed(mean_squared_cosine, AnyLength(), d).then(entry())


@step()
def _independent_entries() -> Identities:
    r"""Uncorrelated entries of mean 0 and variance $\sigma^2$ give the same ratio of means: $E[(\mathbf{u} \cdot
    \mathbf{v})^2] / (\|\mathbf{u}\|^2 E\|\mathbf{v}\|^2) = 1/d$.
    """
    # E v_a v_b = σ² δ_ab.
    u, (a, b), d, sigma = vector("u"), index("a b"), dimension("d"), positive("sigma")
    product_ = symbolic_sum(symbolic_sum(u[a] * u[b] * sigma**2 * delta(a, b), a, d), b, d)
    lengths = symbolic_sum(u[a] ** 2, a, d) * symbolic_sum(sigma**2, a, d)
    yield product_ / lengths, 1 / d


@step(scope=Scope.ENUMERATED, detail="d ≤ 6, every vector")
def _signs() -> Identities:
    """For entries of 1 or $-1$ the mean over all $2^d$ vectors is exactly $1/d$."""
    for d in range(1, 7):
        yield computed(_mean_over_signs, d), sp.Rational(1, d)


def _mean_over_signs(d: int) -> Any:
    """The mean of cos² θ between (1, …, 1) and every vector of d signs."""
    squares = [sp.Rational(sum(v) ** 2, d * d) for v in product((-1, 1), repeat=d)]
    return sum(squares) / len(squares)


@step()
def _distances_concentrate() -> Identities:
    r"""Distances draw together at the same rate: of independent normal vectors, the variance of $\|\mathbf{u} -
    \mathbf{v}\|^2$ over the square of its mean is $2/d$.
    """
    # Entries of u − v: independent, w ~ N(0, 2), E w² = 2, E w⁴ = 3 · 2².
    c, d, v = index("c"), dimension("d"), positive("v")
    mean, variance = symbolic_sum(v, c, d), symbolic_sum(3 * v**2 - v**2, c, d)
    yield variance / mean**2, 2 / d
    x = sp.Symbol("x", real=True)
    density = sp.exp(-(x**2) / 4) / (2 * sp.sqrt(sp.pi))
    for power, moment in ((2, 2), (4, 12)):
        yield computed(sp.integrate, x**power * density, (x, -sp.oo, sp.oo)), sp.Integer(moment)


@step(scope=Scope.ENUMERATED, detail="one dimension")
def _hundred() -> Identities:
    """At d = 100 the cosine's deviation is 0.1, and at least 8 of 9 pairs have one below 0.3."""
    yield sp.Pow(sp.Rational(1, 100), sp.Rational(1, 2), evaluate=False), sp.Rational(1, 10)
    # Chebyshev: at least 1 − 1/(d ε²) lie within ε.
    yield sp.Add(1, -1 / (100 * sp.Rational(3, 10) ** 2), evaluate=False), sp.Rational(8, 9)


@erratum(
    kind="imprecise",
    source=Source("000", "14.1", 450),
    printed=r"\text{In } d > 100 \text{, most vectors are approximately orthogonal}",
    corrected=r"\text{most pairs of independent vectors without a preferred direction; embeddings with a "
    r"common mean are not}",
)
def _needs_zero_mean() -> Evidence:
    d = 6
    vectors = list(product((0, 2), repeat=d))
    inner = sp.Rational(sum(sum(u) for u in vectors), len(vectors))
    squared = sp.Rational(sum(sum(e * e for e in u) for u in vectors), len(vectors))
    point = "entries 0 or 2 with equal chance, any d: mean of u · v over mean of the squared length"
    return Evidence(point, sp.S.Zero, inner**2 / d / squared)


@erratum(
    kind="imprecise",
    source=Source("002", "4.1", 541),
    printed=r"\text{making cosine similarity more discriminative than Euclidean distance}",
    corrected=r"\text{they order vectors of one length alike, and both concentrate as } 1/\sqrt{d} "
    r"\text{; cosine helps where lengths differ and mean nothing}",
)
def _no_more_discriminative() -> Evidence:
    # Unit vectors at 60 and at 90 degrees from (1, 0): d² = 2 − 2 cos θ.
    cosines = (sp.Rational(1, 2), sp.S.Zero)
    nearest = min((0, 1), key=lambda k: 2 - 2 * cosines[k])
    most_similar = max((0, 1), key=lambda k: cosines[k])
    return Evidence(
        "unit vectors: does cosine prefer another neighbour than distance",
        True,
        nearest != most_similar,
        letters={"d": 9},
        values=(sp.Rational(1, 3),),
    )


EQUATIONS = (
    Equation(
        slug="near-orthogonality",
        number=None,
        title="Random vectors are nearly orthogonal",
        statement=r"E[\cos^2 \theta] = \frac{1}{d}",
        sources=(Source("002", "4.1", 541), Source("000", "14.1", 450), Source("001", "14.1", 598)),
        symbols=(
            Symbol("d", r"\mathbb{N}", "the dimension"),
            Symbol(r"\mathbf{u}", r"\mathbb{R}^d", "a fixed vector", "not zero"),
            Symbol(r"\mathbf{v}", r"\mathbb{R}^d", "a random vector", "independent of u, its direction uniform"),
        ),
        assumptions=(Assumption("there is a dimension", lambda a: a["d"] >= 1),),
        sample=lambda rng: {"d": int(rng.integers(1, 500))},
        formula=mean_squared_cosine,
        steps=(_shares, _rate, _independent_entries, _signs, _distances_concentrate, _hundred),
        errata=(_needs_zero_mean, _no_more_discriminative),
    ),
)
