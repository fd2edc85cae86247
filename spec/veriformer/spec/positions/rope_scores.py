"""RoPE turns keys as well: scores then depend on relative positions (equation 31)."""

from __future__ import annotations

from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import POSITIONS
from veriformer.spec.equation import Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.positions.rope import rope, rope_vjp
from veriformer.spec.positions.rope_rotation import ASSUMPTIONS, SYMBOLS, any_length, sample, symbolic
from veriformer.spec.proofs.complex_exponentials import as_exponentials, rotated
from veriformer.spec.proofs.identities import inner_product
from veriformer.spec.proofs.indexed import dimension, index, real, symbolic_sum, vector

# In the proofs for all widths: pair i of the query is (a, b), of the key (c, e), and w holds any frequencies.


def _score(m: Any, n: Any) -> Any:
    """q_m · k_n over any number p of pairs."""
    i, (a, b, c, e, w) = sp.Dummy("i", integer=True), map(vector, "abcew")
    (q_1, q_2), (k_1, k_2) = rotated(a[i], b[i], m * w[i]), rotated(c[i], e[i], n * w[i])
    return symbolic_sum(q_1 * k_1 + q_2 * k_2, i, dimension("p"))


def _printed(offset: Any) -> Any:
    i, (a, b, c, e, w) = sp.Dummy("i", integer=True), map(vector, "abcew")
    cos, sin = as_exponentials(sp.cos(offset * w[i])), as_exponentials(sp.sin(offset * w[i]))
    return symbolic_sum((a[i] * c[i] + b[i] * e[i]) * cos + (a[i] * e[i] - b[i] * c[i]) * sin, i, dimension("p"))


@step()
def _relative() -> Identities:
    r"""$\mathbf{q}_m \cdot \mathbf{k}_n = \sum_i (a_i c_i + b_i e_i) \cos((m - n)\theta_i) + (a_i e_i - b_i c_i)
    \sin((m - n)\theta_i)$: of the positions only $m - n$ is left.
    """
    m, n = real("m n")
    yield _score(m, n), _printed(m - n)


@step()
def _shift() -> Identities:
    """Moving the query and the key by the same t, even a fraction, changes no score. Left padding or packing moves all
    positions of a text, and is harmless here.
    """
    m, n, t = real("m n t")
    yield _score(m + t, n + t), _score(m, n)


@step()
def _one_side() -> Identities:
    r"""Turning one of the two is enough: $\mathbf{q}_m \cdot \mathbf{k}_n = \mathbf{q}_{m-n} \cdot \mathbf{k}_0 =
    \mathbf{q}_0 \cdot \mathbf{k}_{n-m}$.
    """
    m, n = real("m n")
    yield _score(m, n), _score(m - n, 0)
    yield _score(m, n), _score(0, n - m)


@step()
def _same_position() -> Identities:
    r"""At one position the score is the plain dot product $\mathbf{q} \cdot \mathbf{k}$."""
    i, m, (a, b, c, e) = index("i"), real("m"), map(vector, "abce")
    yield _score(m, m), symbolic_sum(a[i] * c[i] + b[i] * e[i], i, dimension("p"))


@step(scope=Scope.ENUMERATED, detail="d = 2, 4 interleaved and 4 in halves, every position, shift and vector")
def _formula() -> Identities:
    """The formula has this property in both pairings."""
    t = real("t")
    for d, pairing in ((2, "interleaved"), (4, "interleaved"), (4, "half")):
        xp, q, m = symbolic("q", d)
        k = xp.asarray([sp.symbols(f"k_1:{d + 1}", real=True)])
        moved = inner_product(rope(xp, q, m + t, pairing=pairing), rope(xp, k, 0 * m + t, pairing=pairing))
        still = inner_product(rope(xp, q, m, pairing=pairing), rope(xp, k, 0 * m, pairing=pairing))
        yield sp.expand(as_exponentials(moved)), as_exponentials(still)


EQUATIONS = (
    Equation(
        slug="rope-relative-position",
        number="31",
        title="RoPE: a key is turned by its position, so scores are relative",
        statement=r"\mathbf{k}_n^{(i)} = R_{\Theta,n}^{(i)} \mathbf{k}^{(i)}",
        sources=(Source("002", "6.2", 821), Source("002", "6.2", 840)),
        symbols=(
            Symbol(r"\mathbf{q}^{(i)}", r"\mathbb{R}^2", "pair i of a query: (a, b) in the steps"),
            Symbol(r"\mathbf{k}^{(i)}", r"\mathbb{R}^2", "pair i of a key: (c, e) in the steps"),
            *SYMBOLS,
        ),
        assumptions=ASSUMPTIONS,
        sample=sample,
        formula=rope,
        vjp=rope_vjp,
        steps=(any_length, _relative, _shift, _one_side, _same_position, _formula),
        costs=POSITIONS["rope"],
    ),
)
