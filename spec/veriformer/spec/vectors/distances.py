"""Euclidean distance and cosine similarity (document 002, sections 4.1 and 4.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import comparison
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import dimension, index, positive, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.published import rounds_to
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step


def euclidean_distance(xp: Any, u: Any, v: Any) -> Any:
    """‖u − v‖ over the last axis, shape [...]."""
    difference = u - v
    return xp.sqrt(xp.sum(difference * difference, axis=-1))


def euclidean_distance_vjp(xp: Any, u: Any, v: Any, g: Any) -> tuple[Any, Any]:
    """du = g (u − v) / ‖u − v‖ and dv = −du, for u ≠ v of one shape."""
    d = euclidean_distance(xp, u, v)
    du = (u - v) * xp.reshape(g / d, (*d.shape, 1))
    return du, -du


def cosine_similarity(xp: Any, u: Any, v: Any) -> Any:
    """u · v / (‖u‖ ‖v‖) over the last axis, shape [...], for vectors that are not zero."""
    return xp.sum(u * v, axis=-1) / (_norm(xp, u) * _norm(xp, v))


def cosine_similarity_vjp(xp: Any, u: Any, v: Any, g: Any) -> tuple[Any, Any]:
    """du = g (v/‖v‖ − cos · u/‖u‖) / ‖u‖ and likewise dv, for u and v of one shape."""
    cosine = xp.reshape(cosine_similarity(xp, u, v), (*u.shape[:-1], 1))
    a, b = (xp.reshape(_norm(xp, x), cosine.shape) for x in (u, v))
    share = xp.reshape(g, cosine.shape)
    return share * (v / b - cosine * u / a) / a, share * (u / a - cosine * v / b) / b


def _norm(xp: Any, x: Any) -> Any:
    return xp.sqrt(xp.sum(x * x, axis=-1))


def _dot(a: Any, b: Any) -> Any:
    c = sp.Dummy("c", integer=True)
    return symbolic_sum(a[c] * b[c], c, dimension("d"))


def _cosine(u: Any, v: Any) -> Any:
    return _dot(u, v) / (sp.sqrt(_dot(u, u)) * sp.sqrt(_dot(v, v)))


@step()
def _moved() -> Identities:
    r"""Moving both vectors by a third changes nothing, and the square is $\mathbf{u} \cdot \mathbf{u} - 2 \mathbf{u}
    \cdot \mathbf{v} + \mathbf{v} \cdot \mathbf{v}$.
    """
    u, v, w, c = vector("u"), vector("v"), vector("w"), index("c")
    moved = symbolic_sum(((u[c] + w[c]) - (v[c] + w[c])) ** 2, c, dimension("d"))
    yield moved, _dot(u, u) - 2 * _dot(u, v) + _dot(v, v)


@step("gradient")
def _distance_gradient() -> Identities:
    r"""The gradient is $(\mathbf{u} - \mathbf{v}) / d_2$, of length one wherever the two differ; at $\mathbf{u} =
    \mathbf{v}$ there is none.
    """
    u, v, (c, a) = vector("u"), vector("v"), index("c a")
    squared = symbolic_sum((u[c] - v[c]) ** 2, c, dimension("d"))
    yield sp.diff(sp.sqrt(squared), u[a]), (u[a] - v[a]) / sp.sqrt(squared)
    yield symbolic_sum((u[a] - v[a]) ** 2 / squared, a, dimension("d")), 1


# The printed vectors, in tenths.
_CAT, _DOG = (8, 2, 1), (7, 3, 2)


def _products(a: tuple[int, ...], b: tuple[int, ...]) -> list[Any]:
    return [sp.Rational(x * y, 100) for x, y in zip(a, b, strict=True)]


def _tenths(a: tuple[int, ...], b: tuple[int, ...]) -> Any:
    return sum(_products(a, b))


@step("worked", scope=Scope.ENUMERATED, detail="one pair of vectors, rounded to two decimals")
def _distance_worked() -> Identities:
    r"""The printed example: $0.01 + 0.01 + 0.01 = 0.03$, and $\sqrt{0.03} \approx 0.17$."""
    apart = tuple(a - b for a, b in zip(_CAT, _DOG, strict=True))
    yield from entrywise(computed(_products, apart, apart), [sp.Rational("0.01")] * 3)
    yield computed(_tenths, apart, apart), sp.Rational("0.03")
    yield rounds_to(sp.sqrt(_tenths(apart, apart)), "0.17")


@step("any-length")
def _any_distance() -> Identities:
    """The formula computes the statement, for all sizes."""
    xp, d, c = AnyLength(), dimension("d"), index("c")
    u, v = vector("u"), vector("v")
    apart = computed(euclidean_distance, xp, xp.array("u", d), xp.array("v", d))
    yield apart.then(entry()), sp.sqrt(symbolic_sum((u[c] - v[c]) ** 2, c, d))


_any_distance_vjp = vjp_step(
    lambda: pullbacks(euclidean_distance, euclidean_distance_vjp, {"u": "n d", "v": "n d"}), "_any_distance_vjp"
)


@step()
def _scaled() -> Identities:
    r"""Positive factors a and b change nothing: the square is the same, and the sign is that of $a b \, \mathbf{u}
    \cdot \mathbf{v}$.
    """
    u, v, c, d, (a, b) = vector("u"), vector("v"), index("c"), dimension("d"), positive("a b")
    inner = symbolic_sum(a * u[c] * b * v[c], c, d)
    norms = [symbolic_sum((f * x[c]) ** 2, c, d) for f, x in ((a, u), (b, v))]
    yield inner**2 / (norms[0] * norms[1]), _cosine(u, v) ** 2
    yield inner, a * b * _dot(u, v)


@step()
def _bounded() -> Identities:
    r"""$\|\mathbf{u}\|^2 \|\mathbf{v}\|^2 - (\mathbf{u} \cdot \mathbf{v})^2 = \frac{1}{2} \sum_{ij} (u_i v_j - u_j
    v_i)^2 \ge 0$ (Lagrange): so $-1 \le \cos \theta \le 1$, with equality for parallel vectors only. Any d.
    """
    u, v, (i, j), d = vector("u"), vector("v"), index("i j"), dimension("d")
    areas = symbolic_sum(symbolic_sum((u[i] * v[j] - u[j] * v[i]) ** 2, i, d), j, d) / 2
    yield _dot(u, u) * _dot(v, v) - _dot(u, v) ** 2, areas
    yield 1 - _cosine(u, v) ** 2, areas / (_dot(u, u) * _dot(v, v))


@step("gradient")
def _cosine_gradient() -> Identities:
    r"""$\partial \cos \theta / \partial \mathbf{u} = (\hat{\mathbf{v}} - \cos \theta \, \hat{\mathbf{u}}) /
    \|\mathbf{u}\|$, at a right angle to u: it turns the vector and does not lengthen it, and turns long ones less.
    """
    u, v, a = vector("u"), vector("v"), index("a")
    length, other = sp.sqrt(_dot(u, u)), sp.sqrt(_dot(v, v))
    slope = (v[a] / other - _cosine(u, v) * u[a] / length) / length
    yield sp.diff(_cosine(u, v), u[a]), slope
    yield symbolic_sum(u[a] * (v[a] * _dot(u, u) - _dot(u, v) * u[a]), a, dimension("d")), 0


@step()
def _unit_vectors() -> Identities:
    r"""Between the directions $\hat{\mathbf{u}} = \mathbf{u} / \|\mathbf{u}\|$ and $\hat{\mathbf{v}}$, distance and
    cosine say the same: $\|\hat{\mathbf{u}} - \hat{\mathbf{v}}\|^2 = 2 - 2 \cos \theta$.
    """
    u, v, c = vector("u"), vector("v"), index("c")
    a, b = sp.sqrt(_dot(u, u)), sp.sqrt(_dot(v, v))
    yield symbolic_sum((u[c] / a - v[c] / b) ** 2, c, dimension("d")), 2 - 2 * _cosine(u, v)


@step(scope=Scope.ENUMERATED, detail="one pair of vectors, rounded to two decimals")
def _worked() -> Identities:
    r"""The printed example up to the division: $0.56 + 0.06 + 0.02 = 0.64$, $\sqrt{0.64 + 0.04 + 0.01} \approx 0.83$,
    $\sqrt{0.49 + 0.09 + 0.04} \approx 0.79$, $0.83 \times 0.79 \approx 0.66$.
    """
    terms = ((_CAT, _DOG, "0.56 0.06 0.02"), (_CAT, _CAT, "0.64 0.04 0.01"), (_DOG, _DOG, "0.49 0.09 0.04"))
    for a, b, printed in terms:
        yield from entrywise(computed(_products, a, b), [sp.Rational(x) for x in printed.split()])
    yield computed(_tenths, _CAT, _DOG), sp.Rational("0.64")
    yield computed(_tenths, _CAT, _CAT), sp.Rational("0.69")
    yield computed(_tenths, _DOG, _DOG), sp.Rational("0.62")
    yield rounds_to(sp.sqrt(_tenths(_CAT, _CAT)), "0.83")
    yield rounds_to(sp.sqrt(_tenths(_DOG, _DOG)), "0.79")
    yield rounds_to(sp.Rational("0.83") * sp.Rational("0.79"), "0.66")


@step("any-length")
def _any_cosine() -> Identities:
    """The formula computes the statement, for all sizes."""
    xp, d = AnyLength(), dimension("d")
    cosine = computed(cosine_similarity, xp, xp.array("u", d), xp.array("v", d))
    yield cosine.then(entry()), _cosine(vector("u"), vector("v"))


_any_cosine_vjp = vjp_step(
    lambda: pullbacks(cosine_similarity, cosine_similarity_vjp, {"u": "n d", "v": "n d"}), "_any_cosine_vjp"
)


@erratum(
    kind="imprecise",
    source=Source("002", "4.2.1", 564),
    printed=r"0.64 / (0.83 \times 0.79) \approx 0.64 / 0.66 \approx 0.97",
    corrected=r"0.64 / \sqrt{0.69 \cdot 0.62} \approx 0.9785 \approx 0.98",
)
def _rounded_too_early() -> Evidence:
    exact = _tenths(_CAT, _DOG) / sp.sqrt(_tenths(_CAT, _CAT) * _tenths(_DOG, _DOG))
    point = "(0.8, 0.2, 0.1) and (0.7, 0.3, 0.2), two decimals"
    return Evidence(point, sp.Rational("0.97"), sp.floor(100 * exact + sp.Rational(1, 2)) / 100, letters={})


@erratum(
    kind="imprecise",
    source=Source("002", "4.2.1", 566),
    printed=r"\text{Values range from -1 (opposite) to 1 (identical)}",
    corrected=r"\text{1 means the same direction, of any length}",
)
def _one_is_not_identical() -> Evidence:
    return Evidence("(1, 0) and (2, 0), whose cosine is 1: are they identical", True, (1, 0) == (2, 0))


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    shape = (2, int(rng.integers(1, 6)))
    return {"u": rng.normal(size=shape), "v": rng.normal(size=shape)}


_WIDTHS = Assumption("the vectors have one width", lambda a: a["u"].shape == a["v"].shape)
_SYMBOLS = (Symbol(r"\mathbf{u}, \mathbf{v}", r"\mathbb{R}^d", "two vectors"),)

EQUATIONS = (
    Equation(
        slug="euclidean-distance",
        number=None,
        title="Euclidean distance",
        statement=r"d_2(\mathbf{u}, \mathbf{v}) = \|\mathbf{u} - \mathbf{v}\|_2",
        sources=(Source("002", "4.1", 533), Source("002", "4.2.2", 572)),
        symbols=_SYMBOLS,
        assumptions=(_WIDTHS,),
        sample=_sample,
        formula=euclidean_distance,
        vjp=euclidean_distance_vjp,
        steps=(_moved, _distance_gradient, _distance_worked, _any_distance, _any_distance_vjp),
        costs=comparison(3),
    ),
    Equation(
        slug="cosine-similarity",
        number=None,
        title="Cosine similarity",
        statement=r"\cos(\theta) = \frac{\mathbf{u}^T \mathbf{v}}{\|\mathbf{u}\|_2 \|\mathbf{v}\|_2}",
        sources=(Source("002", "4.1", 538), Source("002", "4.2.1", 554)),
        symbols=_SYMBOLS,
        assumptions=(
            _WIDTHS,
            Assumption(
                "no vector is zero", lambda a: bool((a["u"] != 0).any(-1).all() and (a["v"] != 0).any(-1).all())
            ),
        ),
        sample=_sample,
        formula=cosine_similarity,
        vjp=cosine_similarity_vjp,
        steps=(_bounded, _scaled, _unit_vectors, _cosine_gradient, _worked, _any_cosine, _any_cosine_vjp),
        costs=comparison(4),
        errata=(_rounded_too_early, _one_is_not_identical),
    ),
)
