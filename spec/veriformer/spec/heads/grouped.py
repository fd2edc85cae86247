"""Grouped and multi-query heads: several queries share keys and values (document 000, section 10.3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.heads.combination import any_length
from veriformer.spec.heads.multi_head_attention import multi_head_attention, multi_head_attention_vjp
from veriformer.spec.heads.published import Case
from veriformer.spec.heads.subspaces import ASSUMPTIONS, over, sample
from veriformer.spec.heads.weights import COSTS, weight_count
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import dimension, index, symbolic_sum, vector


def copied(w: Any, groups: int, share: int) -> Any:
    """The weights of `groups` key heads, each written `share` times, as if every head had its own."""
    d, width = w.shape
    return np.repeat(w.reshape(d, groups, 1, width // groups), share, axis=2).reshape(d, share * width)


@step(scope=Scope.ENUMERATED, detail="(H, G) of (4, 2), (2, 1), (3, 1), a context of 2")
def _copied_heads() -> Identities:
    r"""Sharing is copying: the output is that of multi-head attention whose heads $gr + 1, \ldots, gr + r$ all have the
    weights of key head g.
    """
    for heads, groups, n in ((4, 2, 1), (2, 1, 2), (3, 1, 1)):
        case = Case(heads, groups, n=n, context=2)
        o = multi_head_attention(case.xp, case.x, *case.weights, **case.options)
        for name in (1, 2):
            case.weights[name] = case.xp.asarray(copied(case.weights[name].value, groups, heads // groups))
        case.groups = heads
        yield from entrywise(case.in_full(o), case.as_printed())


@step()
def _shared_gradient() -> Identities:
    r"""So the gradient of a shared weight is the sum over its copies, $\sum_h \sum_j g_{hj} x_{je}$, for any number of
    them.
    """
    # Keys k_j = Σ_a x_ja w_a, read by r heads with a cotangent g_hj each.
    g, x, w, e, r = vector("g"), vector("x"), vector("w"), index("e"), dimension("r")
    h = sp.Dummy("h", integer=True)

    def pulled(a: Any) -> Any:
        return symbolic_sum(over("j", lambda j: g[h, j] * x[j, a]), h, r)

    loss = symbolic_sum(over("j", lambda j: g[h, j] * over("a", lambda a: x[j, a] * w[a])), h, r)
    yield sp.diff(loss, w[e]), pulled(e)


@step()
def _cache() -> Identities:
    """The cache holds $2 B G n d_k$ numbers: $H/G$ times fewer than with a key head for each query, and H times fewer
    if all share one.
    """
    h, (n, b, d_k, heads, groups) = index("h"), (costs.symbol(x) for x in ("n_k", "B", "d_k", "H", "G"))
    per_head, w = 2 * b * n * d_k, costs.symbol("w")
    cache = costs.kv_cache_bytes().subs(costs.symbol("d_v"), d_k)
    yield symbolic_sum(per_head, h, groups) * w, cache
    yield symbolic_sum(per_head, h, heads) * w / cache, heads / groups
    yield symbolic_sum(per_head, h, heads) / per_head, heads


@erratum(
    kind="wrong",
    source=Source("000", "10.3", 328),
    printed=r"2 \cdot B \cdot H \cdot n \cdot d_k \text{ parameters}",
    corrected=r"2 \cdot B \cdot H \cdot n \cdot d_k \text{ numbers in the cache of a layer; parameters "
    r"depend neither on } B \text{ nor on } n",
)
def _not_parameters() -> Evidence:
    n = costs.symbol("n_k")
    printed = costs.kv_cache_bytes().subs({costs.symbol(size): 1 for size in ("B", "G", "d_k", "d_v", "w")})
    point = "all sizes 1: the parameters that come with one more token"
    sizes = {name: costs.symbol(name) for name in ("B", "H", "d_k")}
    cache = costs.kv_cache_bytes().subs({costs.symbol("G"): sizes["H"], costs.symbol("d_v"): sizes["d_k"]})
    return Evidence(
        point,
        printed.subs(n, 2) - printed.subs(n, 1),
        weight_count().diff(n),
        letters={**sizes, "n": n},
        values=(cache.subs(costs.symbol("w"), 1),),
    )


EQUATIONS = (
    Equation(
        slug="grouped-heads",
        number=None,
        title="Grouped-query and multi-query attention",
        statement=r"Q \in \mathbb{R}^{B \times H \times n \times d_k}, \quad K, V \in \mathbb{R}^{B \times G \times "
        r"n \times d_k}, \quad 2 \cdot B \cdot G \cdot n \cdot d_k",
        sources=(
            Source("000", "10.3", 305),
            Source("000", "10.3", 316),
            Source("000", "10.3", 330),
            Source("001", "10.3", 384),
            Source("001", "10.3", 409),
            Source("003", "8, Modern Architectural Innovations", 695),
        ),
        symbols=(
            Symbol("H", r"\mathbb{N}", "the number of query heads"),
            Symbol(
                "G", r"\mathbb{N}", "the number of key and value heads", "divides H; 1 is multi-query, H multi-head"
            ),
            Symbol("r", r"\mathbb{N}", "how many queries share a key head, H over G"),
        ),
        assumptions=ASSUMPTIONS,
        sample=lambda rng: sample(rng, *((4, 2), (6, 3), (3, 1))[int(rng.integers(3))]),
        formula=multi_head_attention,
        vjp=multi_head_attention_vjp,
        steps=(any_length, _copied_heads, _shared_gradient, _cache),
        costs={**COSTS, "bytes of the cache": costs.kv_cache_bytes},
        errata=(_not_parameters,),
    ),
)
