"""Costs of heads: their weights and their operations (documents 002, section 6.1, and 003, section 9)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.proofs.indexed import index, symbolic_sum


def weight_count() -> Any:
    """Weights of the four projections: d H d_k + d G (d_k + d_v) + H d_v d, for input, context and output width d."""
    d, h, g, d_k, d_v = (costs.symbol(name) for name in ("d", "H", "G", "d_k", "d_v"))
    return d * h * d_k + d * g * (d_k + d_v) + h * d_v * d


def projection_flops() -> Any:
    """The four projections: 2 B (n_q d H d_k + n_k d G (d_k + d_v) + n_q H d_v d)."""
    b, n_q, n_k, d, h, g, d_k, d_v = (costs.symbol(x) for x in ("B", "n_q", "n_k", "d", "H", "G", "d_k", "d_v"))
    return 2 * b * (n_q * d * h * d_k + n_k * d * g * (d_k + d_v) + n_q * h * d_v * d)


def flops() -> Any:
    """Projections and attention; the backward pass takes twice as many."""
    return projection_flops() + costs.attention_flops()


def backward_flops() -> Any:
    """Each product Y = X W has two in the backward pass, for X and for W; so has attention for its own."""
    return 2 * projection_flops() + costs.attention_backward_flops()


def score_entries() -> Any:
    """Scores of all heads: B H n_q n_k."""
    b, h, n_q, n_k = (costs.symbol(name) for name in ("B", "H", "n_q", "n_k"))
    return b * h * n_q * n_k


def bytes_at_least() -> Any:
    """Tokens, context and weights are read once, the output is written once; self-attention has no context to read."""
    b, n_q, n_k, d, w = (costs.symbol(name) for name in ("B", "n_q", "n_k", "d", "w"))
    return w * (b * (2 * n_q + n_k) * d + weight_count())


def peak_extra_bytes() -> Any:
    """Queries, keys, values and the output of the heads, and scores and weights of all heads as printed."""
    b, n_q, n_k, h, g, d_k, d_v, w = (costs.symbol(x) for x in ("B", "n_q", "n_k", "H", "G", "d_k", "d_v", "w"))
    projected = b * (n_q * h * d_k + n_k * g * (d_k + d_v))
    return w * (projected + b * n_q * h * d_v) + costs.reference_attention_peak()


COSTS = {
    "parameters": weight_count,
    "FLOPs": flops,
    "FLOPs of the projections": projection_flops,
    "backward FLOPs": backward_flops,
    "bytes at least": bytes_at_least,
    "peak extra bytes": peak_extra_bytes,
    "scores, if written out": score_entries,
}


def _square(cost: Any) -> Any:
    """Return the cost for a text of n tokens, as many key heads as heads, each of width d / H."""
    n, d, h = costs.symbol("n"), costs.symbol("d"), costs.symbol("H")
    sizes = {"B": 1, "G": h, "n_q": n, "n_k": n, "d_k": d / h, "d_v": d / h}
    return cost.subs({costs.symbol(name): size for name, size in sizes.items()}, simultaneous=True)


@step()
def _projections() -> Identities:
    """Three projections of h heads, d by d/h each, have $3d^2$ weights, whatever h is: as many as one head of the full
    width.
    """
    h, d, heads = index("h"), costs.symbol("d"), costs.symbol("H")
    yield symbolic_sum(3 * d * (d / heads), h, heads), 3 * d**2


@step()
def _all_weights() -> Identities:
    """The output projection adds d/h by d for each head, $d^2$: together $4d^2$, without biases."""
    h, d, heads = index("h"), costs.symbol("d"), costs.symbol("H")
    yield symbolic_sum(3 * d * (d / heads) + (d / heads) * d, h, heads), _square(weight_count())
    yield symbolic_sum(4 * d * (d / heads), h, heads), 4 * d**2


@step()
def _grouped() -> Identities:
    r"""With G key heads for H heads, $2 d \, d_k (H - G)$ weights are saved."""
    g, d, d_k, heads, groups = (costs.symbol(name) for name in ("g", "d", "d_k", "H", "G"))
    saved = symbolic_sum(2 * d * d_k, g, heads) - symbolic_sum(2 * d * d_k, g, groups)
    per_head = weight_count().subs(costs.symbol("d_v"), d_k)
    yield per_head.subs(groups, heads) - per_head, saved


@step(scope=Scope.ENUMERATED, detail="the three models that the documents name")
def _widths() -> Identities:
    """The worked widths: 8 heads of 64 fill 512 features, 12 of 64 fill 768, 2 of 32 fill 64."""
    for heads, width, model in ((8, 64, 512), (12, 64, 768), (2, 32, 64)):
        yield symbolic_sum(sp.Integer(width), index("h"), heads), sp.Integer(model)


@step()
def _operations() -> Identities:
    """For n tokens the projections take $8nd^2$ FLOPs and attention $4n^2d$, that is $4n^2 d_k$ per head, whatever h
    is: $O(n^2 d + n d^2)$, and attention is the larger part from $n > 2d$ on.
    """
    n, d = costs.symbol("n"), costs.symbol("d")
    yield _square(flops()), 8 * n * d**2 + 4 * n**2 * d
    yield (
        _square(costs.attention_flops()),
        symbolic_sum(4 * n**2 * (d / costs.symbol("H")), index("h"), costs.symbol("H")),
    )
    yield _square(projection_flops()) / _square(costs.attention_flops()), 2 * d / n


@step()
def _scores() -> Identities:
    """The scores of all heads are $h n^2$ numbers: with more heads of less width the FLOPs stay, and the softmax work
    grows.
    """
    n, heads = costs.symbol("n"), costs.symbol("H")
    yield symbolic_sum(n**2, index("h"), heads), _square(score_entries())


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    heads, width = (int(x) for x in rng.integers(1, 17, size=2))
    return {"d": heads * width, "heads": heads}


EQUATIONS = (
    Equation(
        slug="head-weights",
        number=None,
        title="The weights of multi-head attention",
        statement=r"3 \times h \times d_{\text{model}} \times d_k = 3 d_{\text{model}}^2, \quad "
        r"3 d_{\text{model}}^2 + d_{\text{model}}^2 = 4 d_{\text{model}}^2",
        sources=(
            Source("002", "6.1", 763),
            Source("002", "6.1", 787),
            Source("002", "6.1", 790),
            Source("003", "9, Multi-Head Attention Mathematical Formulation", 984),
        ),
        symbols=(
            Symbol("h, H", r"\mathbb{N}", "the number of heads"),
            Symbol("G", r"\mathbb{N}", "the number of key heads", "h where it is not said"),
            Symbol(r"d_{\text{model}}, d", r"\mathbb{N}", "the width of the model", "a multiple of h"),
            Symbol("d_k, d_v", r"\mathbb{N}", "the width of a head", "d over h"),
        ),
        assumptions=(Assumption("the heads divide the width of the model", lambda a: a["d"] % a["heads"] == 0),),
        sample=_sample,
        steps=(_projections, _all_weights, _grouped, _widths, _operations, _scores),
        costs=COSTS,
    ),
)
