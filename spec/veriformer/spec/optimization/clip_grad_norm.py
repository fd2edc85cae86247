"""Clipping by the global norm (equation 11)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from veriformer.spec import costs
from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.exact_inputs import exactly_equal
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, index, positive, real, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.tower_arithmetic import symbols


def clip_grad_norm(xp: Any, grads: Sequence[Any], max_norm: float) -> tuple[list[Any], Any]:
    """g̃ = min(1, c / ‖g‖₂) g over all arrays of the list together, and ‖g‖₂; the identity where ‖g‖ ≤ c.

    max_norm c ≥ 0 may be 0 (zeros) or ∞ (the identity); an empty list has norm 0.
    """
    norm = global_norm(xp, grads)
    if max_norm == math.inf:
        return list(grads), norm
    nothing = exactly_equal(norm, 0)
    # min(1, ·) instead of a comparison: at ‖g‖ ≈ c rounding may take either side, and the bound must grant both.
    factor = xp.where(nothing, 1, xp.minimum(1, max_norm / xp.where(nothing, 1, norm)))
    return [g * factor for g in grads], norm


def global_norm(xp: Any, grads: Sequence[Any]) -> Any:
    """‖g‖₂ = s √(Σ (g / s)²) with s = max |g|, so that no square leaves the range of the format."""
    flat = [xp.reshape(g, (-1,)) for g in grads if math.prod(g.shape)]
    if not flat:
        return xp.asarray(0)
    g = xp.concat(flat, axis=0)
    s = xp.max(abs(g), axis=0)
    s = xp.where(exactly_equal(s, 0), 1, s)
    return s * xp.sqrt(xp.sum((g / s) * (g / s), axis=0))


def _squared_norm(g: Any) -> Any:
    i = sp.Dummy("i", integer=True)
    return symbolic_sum(g[i] ** 2, i, dimension("n"))


@step()
def _norm_afterwards() -> Identities:
    r"""$\|\tilde{g}\| = \min(\|\mathbf{g}\|, c) \le c$, whichever of the two is larger."""
    # Two cases, each with the slack t ≥ 0 between ‖g‖ and c written out.
    size, t = positive("N"), sp.Symbol("t", nonnegative=True)
    for norm, c in ((size, size + t), (size + t, size)):
        yield sp.Min(1, c / norm) * norm, sp.Min(norm, c)


@step()
def _same_direction() -> Identities:
    r"""Outside, one positive factor multiplies every entry, so that the direction is kept, and $\|\tilde{g}\|^2 =
    c^2$.
    """
    g, i, n, c = vector("g"), index("i"), dimension("n"), positive("c")
    factor = c / sp.sqrt(_squared_norm(g))
    yield symbolic_sum((factor * g[i]) ** 2, i, n), c**2


@step()
def _identity_inside() -> Identities:
    r"""Where $\|\mathbf{g}\| \le c$ the factor is one: every entry stays as it is."""
    size, t, x = positive("N"), sp.Symbol("t", nonnegative=True), real("x")
    yield sp.Min(1, (size + t) / size) * x, x


@step()
def _projection() -> Identities:
    r"""For every h, $\langle \mathbf{g} - \tilde{g}, \mathbf{h} - \tilde{g} \rangle = (1 - c / \|\mathbf{g}\|)(\langle
    \mathbf{g}, \mathbf{h} \rangle - c \|\mathbf{g}\|)$.
    """
    g, h, i, n, c = vector("g"), vector("h"), index("i"), dimension("n"), positive("c")
    norm = sp.sqrt(_squared_norm(g))
    nearest = c / norm * g[i]
    inner = symbolic_sum(g[i] * h[i], i, n)
    yield symbolic_sum((g[i] - nearest) * (h[i] - nearest), i, n), (1 - c / norm) * (inner - c * norm)


@step()
def _cauchy_schwarz() -> Identities:
    r"""$\|\mathbf{g}\|^2 \|\mathbf{h}\|^2 - \langle \mathbf{g}, \mathbf{h} \rangle^2$ is half a sum of squares; so the
    product above is $\le 0$ for $\|\mathbf{h}\| \le c$, which says that $\tilde{g}$ is the point of the ball nearest to
    g.
    """
    g, h, (i, j), n = vector("g"), vector("h"), index("i j"), dimension("n")
    gap = symbolic_sum(symbolic_sum((g[i] * h[j] - g[j] * h[i]) ** 2, i, n), j, n) / 2
    yield _squared_norm(g) * _squared_norm(h) - symbolic_sum(g[i] * h[i], i, n) ** 2, gap


@step(scope=Scope.ENUMERATED, detail="1, 3 and 5 entries of either sign in one or two arrays, also with a zero")
def _stable_norm() -> Identities:
    r"""$s \sqrt{\sum (g / s)^2} = \|\mathbf{g}\|$ for $s = \max |g|$, with which no square overflows: the magnitudes
    are needed, for a negative s would turn the sign of the norm.
    """
    xp = Symbolic()
    for shapes in (((1,),), ((3,),), ((2,), (1, 3))):
        grads = _gradients(xp, shapes)
        yield global_norm(xp, grads).value[()], _printed_norm(grads)
    (g,) = _gradients(xp, ((2,),))
    yield global_norm(xp, [g, xp.asarray([0])]).value[()], _printed_norm([g])


def _gradients(xp: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """Arrays of real numbers other than zero, of either sign."""
    return [xp.asarray(symbols(f"g{k}", *shape, real=True, nonzero=True)) for k, shape in enumerate(shapes)]


def _printed_norm(grads: Sequence[Any]) -> Any:
    return sp.sqrt(sum(e**2 for g in grads for e in g.value.ravel()))


@step()
def _any_length() -> Identities:
    """The formula computes the statement, for every n: scaling the norm by the largest magnitude does not change it."""
    xp, n, i, c = AnyLength(), dimension("n"), index("i"), positive("c")
    g = vector("g")
    clipped = computed(clip_grad_norm, xp, [xp.array("g", n)], c).then(lambda found: entry(i)(found[0][0]))
    yield clipped, sp.Min(1, c / sp.sqrt(_squared_norm(g))) * g[i]


EQUATIONS = (
    Equation(
        slug="clipping",
        number="11",
        title="Clipping by the global norm",
        statement=r"\tilde{g} = \min\left(1, \frac{c}{\|\mathbf{g}\|_2}\right) \mathbf{g}",
        sources=(Source("000", "9.4", 199), Source("001", "9.4", 247)),
        symbols=(
            Symbol(r"\mathbf{g}", r"\mathbb{R}^n", "all gradients together, as one vector", "not zero"),
            Symbol("c", r"[0, \infty]", "the largest norm allowed"),
        ),
        assumptions=(
            Assumption("the gradient is not zero", lambda a: any(bool(g.any()) for g in a["grads"])),
            Assumption("the largest norm is not negative", lambda a: a["max_norm"] >= 0),
        ),
        sample=lambda rng: {
            "grads": [rng.normal(size=(2, 3)), rng.normal(size=4)],
            "max_norm": float(rng.uniform(0.1, 6)),
        },
        formula=clip_grad_norm,
        steps=(
            _norm_afterwards,
            _identity_inside,
            _same_direction,
            _projection,
            _cauchy_schwarz,
            _stable_norm,
            _any_length,
        ),
        costs=costs.lazily("clip_grad_norm"),
    ),
)
