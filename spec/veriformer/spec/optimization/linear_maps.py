"""Linear maps of rows: what they compose to, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, index, sum_over, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step


def linear_map(xp: Any, h: Any, w: Any) -> Any:
    """h W, row by row, for rows h [n, d] and w [d, e]."""
    return xp.matmul(h, w)


def linear_map_vjp(xp: Any, h: Any, w: Any, g: Any) -> tuple[Any, Any]:
    """dh = g Wᵀ and dW = hᵀ g."""
    return xp.matmul(g, xp.swapaxes(w, 0, 1)), xp.matmul(xp.swapaxes(h, 0, 1), g)


def _entry(h: Any, w: Any, i: Any, k: Any) -> Any:
    return sum_over("n", lambda j: h[i, j] * w[j, k])


@step()
def _compose() -> Identities:
    r"""$(\mathbf{h} W_1) W_2 = \mathbf{h} (W_1 W_2)$: two maps in a row are one."""
    h, v, w, (i, k) = vector("h"), vector("V"), vector("W"), index("i k")
    one_by_one = sum_over("m", lambda c: _entry(h, v, i, c) * w[c, k])
    yield one_by_one, sum_over("n", lambda j: h[i, j] * sum_over("m", lambda c: v[j, c] * w[c, k]))


@step()
def _rows() -> Identities:
    """Row i of $H W$ depends on row i of H only, and on each in the same way: a product with a block of rows does every
    position at once.
    """
    # Row i of H W depends on row i of H only, by the same W.
    h, w, (i, k, r, s) = vector("h"), vector("W"), index("i k r s")
    yield sp.diff(_entry(h, w, i, k), h[r, s]), sp.KroneckerDelta(i, r) * w[s, k]


@step()
def _adjoint() -> Identities:
    r"""$\langle \mathbf{h} W, \mathbf{g} \rangle = \langle \mathbf{h}, \mathbf{g} W^T \rangle$: the transpose carries
    gradients back to where they are due.
    """
    # ⟨h W, g⟩ = ⟨h, g Wᵀ⟩.
    h, w, g = vector("h"), vector("W"), vector("g")
    forward = sum_over("m", lambda k: sum_over("n", lambda j: h[j] * w[j, k]) * g[k])
    yield forward, sum_over("n", lambda j: h[j] * sum_over("m", lambda k: g[k] * w[j, k]))


@step()
def _any_length() -> Identities:
    """Two maps one after the other are computed as stated, by one matrix $W_1 W_2$, for all sizes."""
    xp, (i, c) = AnyLength(), index("i c")
    n, d, e, f = map(dimension, "ndef")
    h, w_1, w_2 = vector("h"), vector("W_1"), vector("W_2")
    first = linear_map(xp, xp.array("h", n, d), xp.array("W_1", d, e))
    through = computed(linear_map, xp, first, xp.array("W_2", e, f))
    printed = sum_over(d, lambda a: sum_over(e, lambda b: h[i, a] * w_1[a, b] * w_2[b, c]))
    yield through.then(entry(i, c)), printed


_any_vjp = vjp_step(lambda: pullbacks(linear_map, linear_map_vjp, {"h": "n d", "w": "d e"}))


@erratum(
    kind="imprecise",
    source=Source("002", "2.2.2", 364),
    printed=r"\text{Transpose operations } W^T \text{ reverse transformations during backpropagation}",
    corrected=r"W^T \text{ carries gradients backward; it undoes } W \text{ only where } W W^T = I",
)
def _transpose_is_not_the_inverse() -> Evidence:
    h, w = sp.Matrix([[1, 0]]), sp.Matrix([[1, 1], [0, 1]])
    turn = np.array([[0, -1], [1, 0]])
    return Evidence(
        "h = (1, 0), W = ((1, 1), (0, 1)): h W Wᵀ for a reversal",
        tuple(h),
        tuple(h * w * w.T),
        letters={"W": turn, "I": np.eye(2, dtype=int)},
        values=(np.linalg.inv(turn).astype(int),),
    )


def _sample_rows(rng: np.random.Generator) -> dict[str, Any]:
    n, d, e = rng.integers(1, 5, size=3)
    return {"h": rng.normal(size=(n, d)), "w": rng.normal(size=(d, e))}


EQUATIONS = (
    Equation(
        slug="linear-maps",
        number=None,
        title="Linear maps of rows, and their transposes",
        statement=r"\mathbf{h}_{\text{new}} = \mathbf{h}_{\text{old}} W, \quad \mathbf{h}_3 = \mathbf{h}_1 W_1 W_2",
        sources=(Source("002", "2.2.2", 362), Source("002", "2.2.2", 371)),
        symbols=(
            Symbol(r"\mathbf{h}", r"\mathbb{R}^{1 \times d}", "a row"),
            Symbol("W", r"\mathbb{R}^{d \times e}", "weights"),
            Symbol(r"\mathbf{g}", r"\mathbb{R}^{1 \times e}", "a gradient by the result"),
        ),
        assumptions=(Assumption("rows and weights conform", lambda a: a["h"].shape[1] == a["w"].shape[0]),),
        sample=_sample_rows,
        formula=linear_map,
        vjp=linear_map_vjp,
        steps=(_compose, _rows, _adjoint, _any_length, _any_vjp),
        errata=(_transpose_is_not_the_inverse,),
    ),
)
