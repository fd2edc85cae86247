"""Attention in a subspace: a single head (equation 26)."""

from __future__ import annotations

from itertools import combinations, permutations
from math import prod
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.heads.any_heads import AnyHeads
from veriformer.spec.heads.multi_head_attention import multi_head_attention, multi_head_attention_vjp
from veriformer.spec.heads.published import Case
from veriformer.spec.heads.weights import COSTS
from veriformer.spec.proofs.any_length import entry, picks
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import index, ranged, vector
from veriformer.spec.proofs.tower_arithmetic import symbols

# In the proofs for all sizes: a, b run over d features of the model, c over the e = d_k features of a head.


over = ranged(a="d", b="d", c="e", j="n", h="H")


@step()
def _bilinear() -> Identities:
    r"""A score is $\mathbf{x}_i (W^Q W^{K\,T}) \mathbf{x}_j^T$: queries and keys are two halves of one bilinear form on
    the features of the model, and only their product counts.
    """
    q, x, c, w_q, w_k, (i, j, b) = *map(vector, "qXC"), vector("Wq"), vector("Wk"), index("i j b")
    # Any query q, and then the one that is projected from token i.
    score = over("c", lambda k: q[k] * over("b", lambda b: c[j, b] * w_k[b, k]))
    yield score, over("b", lambda b: c[j, b] * over("c", lambda k: q[k] * w_k[b, k]))
    projected = over("c", lambda k: over("a", lambda a: x[i, a] * w_q[a, k]) * w_k[b, k])
    yield projected, over("a", lambda a: x[i, a] * over("c", lambda k: w_q[a, k] * w_k[b, k]))


@step(scope=Scope.ENUMERATED, detail="d_k = 2, 3, the minor of d_k + 1 features")
def _rank() -> Identities:
    """Its rank is at most $d_k$, as every minor of $d_k + 1$ rows and columns vanishes: a head compares tokens in $d_k$
    directions, and is blind to all others.
    """
    for d_k in (2, 3):
        form = symbols("Wq", d_k + 1, d_k) @ symbols("Wk", d_k + 1, d_k).T
        yield sum(_term(form, order) for order in permutations(range(d_k + 1))), 0


def _term(form: Any, order: tuple[int, ...]) -> Any:
    """Return a term of Leibniz's determinant: sgn(order) ∏ᵢ form[i, order(i)]."""
    odd = sum(a > b for a, b in combinations(order, 2)) % 2
    return (-1) ** odd * prod(form[i, k] for i, k in enumerate(order))


@step()
def any_length() -> Identities:
    """The formula computes the statement for all sizes: the heads are seen through an output projection that is 1 for
    one feature e of one head (g, s), the s-th of those that read key head g, and 0 for all else.
    """
    case, (b, g, s, i, e) = AnyHeads(), index("b g s i e")
    one = case.computed(lambda xp: picks(xp, (case.groups, g), (case.r, s), (case.d_v, e)))
    yield one.then(entry(b, i, 1)), case.head(b, g, s, i, e)


@step(scope=Scope.ENUMERATED, detail="(n, d, d_k, d_v) of (2, 2, 2, 1) and (3, 1, 1, 2)")
def _formula() -> Identities:
    """With one head the formula is the statement, times the output projection."""
    for sizes in ({"d": 2, "d_k": 2}, {"n": 3, "d_v": 2}):
        case = Case(1, 1, **sizes)
        o = multi_head_attention(case.xp, case.x, *case.weights, **case.options)
        yield from entrywise(case.in_full(o), case.as_printed())


@erratum(
    kind="imprecise",
    source=Source("002", "6.1", 741),
    printed=r"\text{This forces each head to focus on a specific subset of features}",
    corrected=r"\text{each head sees } d_k \text{ combinations of all } d_{\text{model}} \text{ features}",
)
def _all_features() -> Evidence:
    x, w = symbols("x", 2), np.array([1, 1])
    read = sum(sp.diff(x @ w, feature) != 0 for feature in x)
    return Evidence(
        "d_model = 2, two heads of one feature, W = (1, 1)ᵀ: features that the head looks at",
        1,
        read,
        letters={"d_k": 1, "d_model": 2},
    )


def sample(rng: np.random.Generator, heads: int = 1, groups: int = 1) -> dict[str, Any]:
    """Arguments of multi-head attention."""
    n, d, d_k, d_v = (int(x) for x in rng.integers(1, 4, size=4))
    shapes = {"w_q": (d, heads * d_k), "w_k": (d, groups * d_k), "w_v": (d, groups * d_v), "w_o": (heads * d_v, d)}
    weights = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    return {"x": rng.normal(size=(2, n, d)), **weights, "num_heads": heads, "num_kv_heads": groups}


SYMBOLS = (
    Symbol("Q, K, V", r"\mathbb{R}^{n \times d_{\text{model}}}", "what queries, keys and values are projected from"),
    Symbol("W_i^Q, W_i^K", r"\mathbb{R}^{d_{\text{model}} \times d_k}", "projections of head i to queries and keys"),
    Symbol("W_i^V", r"\mathbb{R}^{d_{\text{model}} \times d_v}", "its projection to values"),
    Symbol("h", r"\mathbb{N}", "the number of heads; the documents take its part of the width for both head widths"),
)
ASSUMPTIONS = (
    Assumption("the heads divide the columns", lambda a: a["w_q"].shape[1] % a["num_heads"] == 0),
    Assumption(
        "queries and keys have one width",
        lambda a: a["w_q"].shape[1] // a["num_heads"] == a["w_k"].shape[1] // a["num_kv_heads"],
    ),
    Assumption("the key heads divide the heads", lambda a: a["num_heads"] % a["num_kv_heads"] == 0),
)

EQUATIONS = (
    Equation(
        slug="head",
        number="26",
        title="One head",
        statement=r"\text{head}_i = \text{Attention}(QW_i^Q, KW_i^K, VW_i^V)",
        sources=(
            Source("002", "6.1", 724),
            Source("003", "3, Multi-Head Attention", 107),
            Source("003", "9, Multi-Head Attention Mathematical Formulation", 916),
            Source("004", "1", 20),
        ),
        symbols=SYMBOLS,
        assumptions=ASSUMPTIONS,
        sample=sample,
        formula=multi_head_attention,
        vjp=multi_head_attention_vjp,
        steps=(_bilinear, _rank, any_length, _formula),
        costs=COSTS,
        errata=(_all_features,),
    ),
)
