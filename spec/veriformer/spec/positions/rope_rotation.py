"""RoPE turns queries: why it is a rotation, and what follows from that (equation 30)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic import Float, Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import (
    POSITIONS,
    rotation_operations,
    rotation_operations_by_matrix,
)
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.positions.angles import frequencies
from veriformer.spec.positions.rope import rope, rope_vjp
from veriformer.spec.proofs.any_length import AnyLength, entry, place, whole_numbers
from veriformer.spec.proofs.complex_exponentials import as_exponentials, rotated
from veriformer.spec.proofs.indexed import dimension, index, positive, real, symbolic_sum, vector, whole
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks


def places(d: int, pairing: str) -> list[tuple[int, int]]:
    """The features that make up each pair."""
    return [(2 * i, 2 * i + 1) if pairing == "interleaved" else (i, i + d // 2) for i in range(d // 2)]


def symbolic(name: str, d: int) -> tuple[Symbolic, Any, Any]:
    """An arithmetic, a row of d symbols, and one symbolic position."""
    xp = Symbolic()
    return xp, xp.asarray([sp.symbols(f"{name}_1:{d + 1}", real=True)]), np.array([real("m")], dtype=object)


@step(scope=Scope.ENUMERATED, detail="d = 2, 4 interleaved and 4, 6 in halves, every base, position and vector")
def _complex() -> Identities:
    r"""Read a pair as a complex number: $a' + \mathrm{i} b' = (a + \mathrm{i} b) e^{\mathrm{i} m \theta}$, and so its
    conjugate. This is the statement, and what the formula computes without any matrix.
    """
    base = positive("b")
    for d, pairing in ((2, "interleaved"), (4, "interleaved"), (4, "half"), (6, "half")):
        xp, x, m = symbolic("x", d)
        y = rope(xp, x, m, base=base, pairing=pairing).value[0]
        for i, (a, b) in enumerate(places(d, pairing)):
            turn = sp.exp(sp.I * m[0] * base ** sp.Rational(-2 * i, d))
            yield (
                sp.expand(as_exponentials(y[a]) + sp.I * as_exponentials(y[b])),
                (x.value[0, a] + sp.I * x.value[0, b]) * turn,
            )
            yield (
                sp.expand(as_exponentials(y[a]) - sp.I * as_exponentials(y[b])),
                (x.value[0, a] - sp.I * x.value[0, b]) / turn,
            )


@step()
def any_length() -> Identities:
    r"""The formula computes the statement, for any number of rows at any positions, any even width and any base: for
    pairs of neighbours, and for pairs whose second feature stands half the width after the first. In $\theta_i$ pairs
    count from 0. Neighbours are written (i, 1) and (i, 2).
    """
    # Neighbours: pair i of m. Halves: pair i of m = i + u.
    t, i, m, base = index("t"), dimension("i"), dimension("m"), positive("b")
    after = sp.Symbol("u", integer=True, nonnegative=True)
    halves = i + after
    positions, x = whole("p"), vector("x")
    for pairing, pairs, a, b in (
        ("interleaved", m, place(i, 1, 2), place(i, 2, 2)),
        ("half", halves, i, halves + i),
    ):
        xp = AnyLength()
        rows = xp.array("x", dimension("n"), 2 * pairs), whole_numbers(positions, dimension("n"))
        y = computed(rope, xp, *rows, base=base, pairing=pairing)
        angle = positions[t] * sp.exp(-2 * (i - 1) / (2 * pairs) * sp.log(base))
        yield y.then(entry(t, a)), x[t, a] * sp.cos(angle) - x[t, b] * sp.sin(angle)
        yield y.then(entry(t, b)), x[t, a] * sp.sin(angle) + x[t, b] * sp.cos(angle)


@step()
def _group_law() -> Identities:
    """Turns add up: $R_m R_n = R_{m+n}$, whatever the frequency, also for fractions and negative numbers."""
    m, n, w, a, b = real("m n w a b")
    twice = rotated(*rotated(a, b, n * w), m * w)
    once = rotated(a, b, (m + n) * w)
    yield from zip(map(sp.expand, twice), once, strict=True)


@step()
def _inverse() -> Identities:
    """Hence $R_m^{-1} = R_{-m}$, and that is the transpose: the rotation is orthogonal."""
    m, w, a, b = real("m w a b")
    yield from zip(map(sp.expand, rotated(*rotated(a, b, m * w), -m * w)), (a, b), strict=True)
    c, s = as_exponentials(sp.cos(m * w)), as_exponentials(sp.sin(m * w))
    transposed = (a * c + b * s, b * c - a * s)
    yield from zip(map(sp.expand, rotated(a, b, -m * w)), transposed, strict=True)


@step()
def _norm() -> Identities:
    r"""$\|R_m \mathbf{x}\| = \|\mathbf{x}\|$ for any number of pairs at any frequencies: length is kept."""
    i, m, (x, y, w) = index("i"), real("m"), map(vector, "xyw")
    a, b = rotated(x[i], y[i], m * w[i])
    yield symbolic_sum(a * a + b * b, i, dimension("p")), symbolic_sum(x[i] ** 2 + y[i] ** 2, i, dimension("p"))


@step(scope=Scope.ENUMERATED, detail="d ≤ 8, every position and vector")
def _pairings() -> Identities:
    """The two pairings are one permutation apart: with the even features first and the odd ones after them, halves are
    turned as neighbours were. Queries and keys that agree on the order have the same scores, so either is right, but
    weights trained with one are wrong with the other.
    """
    for d in (2, 4, 6, 8):
        xp, x, m = symbolic("x", d)
        order = [*range(0, d, 2), *range(1, d, 2)]
        half = rope(xp, x[:, order], m, pairing="half").value[0]
        moved = rope(xp, x, m, pairing="interleaved").value[0][order]
        yield from zip(map(as_exponentials, half), (sp.expand(as_exponentials(y)) for y in moved), strict=True)


@step()
def _elementwise() -> Identities:
    """Six operations for each of $d/2$ pairs are $3d$ per row, against $d(2d - 1)$ for a matrix of that size: $(2d -
    1)/3$ times fewer.
    """
    i, n, d = index("i"), costs.symbol("N"), costs.symbol("d")
    yield symbolic_sum(4 * n + 2 * n, i, d / 2), rotation_operations()
    yield rotation_operations_by_matrix() / rotation_operations(), (2 * d - 1) / 3


@step()
def _any_vjp() -> Identities:
    """The vector-Jacobian product is the derivative that SymPy takes, for all sizes and both features of every pair."""
    n, m = map(dimension, "nm")
    positions = whole_numbers(whole("p"), n)
    for half in (1, 2):
        place_of = {2 * m: place(index("t"), half, 2)}
        yield from pullbacks(rope, rope_vjp, {"x": (n, 2 * m), "p": positions}, place_of, base=positive("b"))


@erratum(
    kind="imprecise",
    source=Source("002", "6.2", 833),
    printed=r"\theta_i = 10000^{-2i/d_{\text{model}}}",
    corrected=r"\theta_i = 10000^{-2i/d_k} \text{, by the width of the vector that is turned, as } d "
    r"\text{ in line 886; the same for one head only}",
)
def _width_of_a_head() -> Evidence:
    slowest = [float(frequencies(Float(), d).value[1]) for d in (8, 4)]
    turns = frequencies(Symbolic(), 4).value
    return Evidence(
        "d_model = 8, two heads of d_k = 4, the frequency of pair 1",
        f"{slowest[0]:.2f}",
        f"{slowest[1]:.2f}",
        letters={"theta": lambda i: turns[i], "i": range(2), "d_k": 4, "d": 4},
    )


@erratum(
    kind="convention",
    source=Source("002", "6.2", 820),
    printed=r"\mathbf{q}_m = R_{\Theta,m} \mathbf{q}",
    corrected=r"\mathbf{q}_m = \mathbf{q} R_{\Theta,m}^T \text{, for vectors are rows (line 14)}",
)
def _rows_turn_the_other_way() -> Evidence:
    quarter = np.array([[0, -1], [1, 0]])
    q = np.array([1, 0])
    return Evidence(
        "q = (1, 0) and mθ = π/2, so R = ((0, -1), (1, 0))",
        str(q @ quarter),
        str(quarter @ q),
        letters={"q": q[None], "q_m": (quarter @ q)[None], "R": lambda *_: quarter, "Theta": 0, "m": 0},
    )


def sample(rng: np.random.Generator) -> dict[str, Any]:
    """Arguments of rope: rows at any positions, in either pairing."""
    n, d = int(rng.integers(1, 5)), 2 * int(rng.integers(1, 5))
    pairing = str(rng.choice(["interleaved", "half"]))
    return {"x": rng.normal(size=(2, n, d)), "positions": rng.integers(-50, 5000, size=n), "pairing": pairing}


ASSUMPTIONS = (
    Assumption("the width is even, so that features come in pairs", lambda a: a["x"].shape[-1] % 2 == 0),
    Assumption("there is one position per row", lambda a: a["positions"].shape == a["x"].shape[-2:-1]),
)
SYMBOLS = (
    Symbol("i", r"\{0, \ldots, d_k / 2 - 1\}", "the number of a pair of features"),
    Symbol(r"\theta_i", r"(0, 1]", "the frequency of pair i: 10000 to the power −2i over the width that is turned"),
    Symbol(r"R_{\Theta,m}^{(i)}", r"SO(2)", "the rotation of pair i by the angle of position m"),
)

EQUATIONS = (
    Equation(
        slug="rope",
        number="30",
        title="RoPE: a query is turned by its position",
        statement=r"\mathbf{q}_m^{(i)} = R_{\Theta,m}^{(i)} \mathbf{q}^{(i)}, \quad R_{\Theta,m}^{(i)} = "
        r"\begin{pmatrix} \cos(m\theta_i) & -\sin(m\theta_i) \\ \sin(m\theta_i) & \cos(m\theta_i) \end{pmatrix}",
        sources=(Source("002", "6.2", 820), Source("002", "6.2", 827)),
        symbols=(Symbol(r"\mathbf{q}^{(i)}", r"\mathbb{R}^2", "pair i of a query, as a column"), *SYMBOLS),
        assumptions=ASSUMPTIONS,
        sample=sample,
        formula=rope,
        vjp=rope_vjp,
        steps=(_complex, any_length, _group_law, _inverse, _norm, _elementwise, _pairings, _any_vjp),
        costs=POSITIONS["rope"],
        errata=(_width_of_a_head, _rows_turn_the_other_way),
    ),
)
