"""Costs of a block: its parameters and its operations (documents 002, section 7.1, and 003, sections 9 and 11)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import network_flops, network_parameters
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.heads.weights import flops as heads_flops
from veriformer.spec.heads.weights import weight_count as heads_weights
from veriformer.spec.proofs.indexed import index, symbolic_sum


def feed_forward_flops() -> Any:
    """Two products with W₁ [d, f] and W₂ [f, d] for every token: 4 B n_q d f."""
    return _of_tokens(network_flops())


def block_flops() -> Any:
    """Attention with its projections, and the feed-forward network."""
    return heads_flops() + feed_forward_flops()


def block_parameters() -> Any:
    """Projections, both layers of the network with their biases, weight and bias of two norms."""
    return heads_weights() + _of_tokens(network_parameters()) + 4 * costs.symbol("d")


def block_other() -> Any:
    """Scores, two norms of seven passes, two sums and two biases; the activation is counted by its own operation."""
    b, n_q, d, f = (costs.symbol(name) for name in ("B", "n_q", "d", "f"))
    return costs.attention_other() + b * n_q * (2 * 7 * d + 2 * d + d + f)


def _of_tokens(cost: Any) -> Any:
    """The cost of a network that gives B n_q tokens the width that they had."""
    tokens = costs.symbol("B") * costs.symbol("n_q")
    return cost.subs({costs.symbol("N"): tokens, costs.symbol("o"): costs.symbol("d")}, simultaneous=True)


COSTS = {"parameters": block_parameters, "FLOPs": block_flops, "other operations": block_other}


def usual(cost: Any) -> Any:
    """Return the cost for a text of n tokens, n_q = n_k = n, H heads of width d / H, and a network of width 4 d."""
    n, d, heads = costs.symbol("n"), costs.symbol("d"), costs.symbol("H")
    sizes = {"B": 1, "G": heads, "n_q": n, "n_k": n, "d_k": d / heads, "d_v": d / heads, "f": 4 * d}
    return sp.expand(cost.subs({costs.symbol(name): size for name, size in sizes.items()}, simultaneous=True))


@step()
def _operations() -> Identities:
    """The network takes $16 n d^2$ FLOPs, and the whole block $24 n d^2 + 4 n^2 d$: in n and d of the order that is
    printed.
    """
    n, d = costs.symbol("n"), costs.symbol("d")
    yield usual(feed_forward_flops()), symbolic_sum(2 * d * 4 * d, index("i"), 2 * n)
    yield usual(block_flops()), 24 * n * d**2 + 4 * n**2 * d


@step()
def _parameters() -> Identities:
    """A block has $12 d^2 + 9 d$ parameters: $4 d^2$ in attention, $8 d^2 + 5 d$ in the network, $4 d$ in the norms."""
    d = costs.symbol("d")
    yield usual(block_parameters()), symbolic_sum(sp.Integer(12), index("i"), d) * d + 13 * d - 4 * d


@step()
def _crossing() -> Identities:
    """Scores and values outgrow everything else from $n > 6 d$ on, and attention with its projections outgrows the
    network from $n > 2 d$ on.
    """
    n, d = costs.symbol("n"), costs.symbol("d")
    attention = usual(costs.attention_flops())
    yield usual(block_flops() - costs.attention_flops()) - attention, 4 * n * d * (6 * d - n)
    yield usual(feed_forward_flops() - heads_flops()), 4 * n * d * (2 * d - n)


@step(scope=Scope.ENUMERATED, detail="d = 768, without biases in the projections")
def _gpt_2() -> Identities:
    """At d = 768 a block has 7,084,800 parameters, and twelve of them 85,017,600."""
    d = costs.symbol("d")
    one = usual(block_parameters()).subs(d, 768)
    yield symbolic_sum(sp.Integer(12 * 768 + 9), index("i"), 768), one
    yield symbolic_sum(one, index("l"), 12), sp.Integer(85_017_600)
    yield symbolic_sum(sp.Integer(7_084_800), index("l"), 12), sp.Integer(85_017_600)


@erratum(
    kind="imprecise",
    source=Source("003", "11, Stage 6: Feed-Forward Networks", 1331),
    printed=r"\text{Dominates transformer computation cost due to large hidden dimension}",
    corrected=r"\text{as long as } n < 2 d_{\text{model}}",
)
def _not_always_dominant() -> Evidence:
    at = {costs.symbol("n"): 2048, costs.symbol("d"): 768, costs.symbol("H"): 12}
    network, attention = (usual(cost).subs(at) for cost in (feed_forward_flops(), heads_flops()))
    return Evidence(
        "d = 768, n = 2048: is the network the larger part of a block's FLOPs",
        True,
        bool(network > attention),
        letters={"n": 2048, "d_model": 768},
        values=(bool(network > attention),),
    )


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    heads, width = (int(x) for x in rng.integers(1, 17, size=2))
    return {"d": heads * width, "heads": heads, "inner": 4 * heads * width}


EQUATIONS = (
    Equation(
        slug="block-costs",
        number=None,
        title="The costs of a block",
        statement=r"O(n^2 \cdot d_{\text{model}} + n \cdot d_{\text{model}}^2)",
        sources=(
            Source("003", "9, Multi-Head Attention Mathematical Formulation", 986),
            Source("003", "11, Stage 6: Feed-Forward Networks", 1335),
        ),
        symbols=(
            Symbol("n", r"\mathbb{N}", "the number of tokens"),
            Symbol(r"d_{\text{model}}, d", r"\mathbb{N}", "the width of the model"),
            Symbol("f", r"\mathbb{N}", "the inner width of the feed-forward network", "four times d"),
        ),
        assumptions=(
            Assumption("the heads divide the width of the model", lambda a: a["d"] % a["heads"] == 0),
            Assumption("the network is four times as wide as the model", lambda a: a["inner"] == 4 * a["d"]),
        ),
        sample=_sample,
        steps=(_operations, _parameters, _crossing, _gpt_2),
        costs=COSTS,
        errata=(_not_always_dominant,),
    ),
)
