"""Maximum inner product search (document 002, section 4.3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.attention.similarity import similarity
from veriformer.spec.costs import SEARCH
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import dimension, index, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed


def largest_inner_product(xp: Any, q: Any, v: Any) -> Any:
    """max_i q · v_i, shape [..., n_q], for queries [..., n_q, d] and n ≥ 1 vectors [..., n, d]."""
    return xp.max(similarity(xp, q, v), axis=-1)


def _dot(a: Any, b: Any) -> Any:
    c = sp.Dummy("c", integer=True)
    return symbolic_sum(a[c] * b[c], c, dimension("d"))


def _squared(a: Any, b: Any) -> Any:
    c = sp.Dummy("c", integer=True)
    return symbolic_sum((a[c] - b[c]) ** 2, c, dimension("d"))


@step()
def _one_length() -> Identities:
    r"""$\|\mathbf{q} - \mathbf{v}\|^2 - \|\mathbf{v}\|^2 = \|\mathbf{q}\|^2 - 2 \mathbf{q} \cdot \mathbf{v}$: among
    vectors of one length the largest inner product, the nearest vector and the largest cosine are one, for any d.
    """
    q, v, w, r = vector("q"), vector("v"), vector("w"), sp.Symbol("r", positive=True)
    # ‖v‖ = ‖w‖ = r.
    lengths = [(_dot(q, q) + r**2 - 2 * _dot(q, x)) for x in (v, w)]
    yield (lengths[1] - lengths[0]) / 2, _dot(q, v) - _dot(q, w)
    yield _squared(q, v) - _dot(v, v), _dot(q, q) - 2 * _dot(q, v)


@step()
def _augmented() -> Identities:
    r"""With one more entry, $\sqrt{M^2 - \|\mathbf{v}\|^2}$ for vectors up to length M and 0 for the query, all vectors
    have length M, and the squared distance is $\|\mathbf{q}\|^2 + M^2 - 2 \mathbf{q} \cdot \mathbf{v}$: any such search
    is a search for the nearest.
    """
    q, v, m = vector("q"), vector("v"), sp.Symbol("M", positive=True)
    extra = sp.sqrt(m**2 - _dot(v, v))
    yield _squared(q, v) + (0 - extra) ** 2, _dot(q, q) + m**2 - 2 * _dot(q, v)
    yield _dot(v, v) + extra**2, m**2


@step()
def _linear() -> Identities:
    """The length of the query scales all inner products alike and changes no winner."""
    q, v, c, d, t = vector("q"), vector("v"), index("c"), dimension("d"), sp.Symbol("t", positive=True)
    yield symbolic_sum(t * q[c] * v[c], c, d) / t, _dot(q, v)


_QUERY, _VECTORS = (2, 0), ((6, 8), (4, 0), (2, 1))


def _winners() -> tuple[int, int, int]:
    inner = [sum(a * b for a, b in zip(_QUERY, v, strict=True)) for v in _VECTORS]
    cosine = [sp.Integer(x) / sp.sqrt(sum(e * e for e in v)) for x, v in zip(inner, _VECTORS, strict=True)]
    squared = [sum((a - b) ** 2 for a, b in zip(_QUERY, v, strict=True)) for v in _VECTORS]
    ids = range(len(_VECTORS))
    return max(ids, key=lambda i: inner[i]), max(ids, key=lambda i: cosine[i]), min(ids, key=lambda i: squared[i])


@step(scope=Scope.ENUMERATED, detail="one query, three vectors")
def _three_orders() -> Identities:
    """Otherwise the three differ: for q = (2, 0), of (6, 8), (4, 0) and (2, 1) the first has the largest inner product,
    the second the largest cosine, and the third is nearest.
    """
    yield from entrywise(computed(_winners), (0, 1, 2))


@erratum(
    kind="imprecise",
    source=Source("002", "4.3", 594),
    printed=r"\text{This is exactly what attention computes}",
    corrected=r"\text{attention weighs all values by } e^{s_i} \text{; it takes the argmax only as the "
    r"temperature goes to 0}",
)
def _attention_takes_a_mean() -> Evidence:
    weight = sp.E / (1 + sp.E)
    return Evidence(
        "q = 1, keys 1 and 0, which are the values too: what comes out",
        sp.S.One,
        weight * 1 + 0,
        letters={"s": [3], "i": 1},
        values=(sp.E**3,),
    )


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    d = int(rng.integers(1, 5))
    return {"q": rng.normal(size=(2, d)), "v": rng.normal(size=(int(rng.integers(1, 6)), d))}


EQUATIONS = (
    Equation(
        slug="inner-product-search",
        number=None,
        title="Maximum inner product search",
        statement=r"\mathbf{v}^* = \mathrm{arg}\max_{\mathbf{v} \in \mathcal{V}} \mathbf{q}^T \mathbf{v}",
        sources=(Source("002", "4.3", 591),),
        symbols=(
            Symbol(r"\mathbf{q}", r"\mathbb{R}^d", "a query"),
            Symbol(r"\mathcal{V}", r"\mathbb{R}^{n \times d}", "n vectors, not none"),
        ),
        assumptions=(
            Assumption("there is a vector", lambda a: a["v"].shape[0] > 0),
            Assumption("query and vectors have one width", lambda a: a["q"].shape[-1] == a["v"].shape[-1]),
        ),
        sample=_sample,
        formula=largest_inner_product,
        steps=(_one_length, _augmented, _linear, _three_orders),
        costs=SEARCH,
        errata=(_attention_takes_a_mean,),
    ),
)
