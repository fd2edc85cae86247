"""Costs and savings of a cache over a text (documents 000, sections 10.3 and 10.4, and 003, section 10).

One token is generated per step; t tokens are there, of width d, in a block with a network of 4 d. Without a cache a
step computes all t tokens again, every pair of them, as the documents count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.blocks.costs_block import block_flops, usual
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.heads.weights import flops as heads_flops
from veriformer.spec.heads.weights import projection_flops
from veriformer.spec.proofs.indexed import index, symbolic_sum

_STAGE = "10, Stage 5: KV Cache Operations"


def without_cache() -> Any:
    """FLOPs of attention with its projections at a step that computes all t tokens: 8 t d² + 4 t² d."""
    return _at_length(usual(heads_flops()))


def with_cache() -> Any:
    """FLOPs of attention with its projections of one token over a cache of t: 8 d² + 4 t d."""
    return _one_token(heads_flops())


def cache_numbers() -> Any:
    """Keys and values of L layers with G key heads, t tokens of width d_k: 2 L G t d_k."""
    layers, groups, d_k = (costs.symbol(name) for name in ("L", "G", "d_k"))
    return 2 * layers * groups * costs.symbol("t") * d_k


def _at_length(cost: Any) -> Any:
    return cost.subs(costs.symbol("n"), costs.symbol("t"))


def _one_token(cost: Any) -> Any:
    """Return the cost of a query, its own key and value alone projected, over t keys in H heads of width d / H."""
    t, d, heads = costs.symbol("t"), costs.symbol("d"), costs.symbol("H")
    own = {"B": 1, "G": heads, "n_q": 1, "d_k": d / heads, "d_v": d / heads, "f": 4 * d}
    sizes = {costs.symbol(name): size for name, size in own.items()}
    n_k = costs.symbol("n_k")
    attention = costs.attention_flops()
    rest = (cost - attention).subs(n_k, 1)
    return sp.expand((rest + attention.subs(n_k, t)).subs(sizes, simultaneous=True))


@step()
def _steps() -> Identities:
    """A step takes $8 t d^2 + 4 t^2 d$ FLOPs for attention and its projections without a cache, and $8 d^2 + 4 t d$
    with one: quadratic in t, and linear.
    """
    t, d = costs.symbol("t"), costs.symbol("d")
    yield without_cache(), symbolic_sum(8 * d**2 + 4 * t * d, index("i"), t)
    yield with_cache(), symbolic_sum(8 * d, index("i"), d) + 4 * t * d


@step()
def _speedup() -> Identities:
    """With a cache a step takes t times fewer FLOPs, exactly, and so it is for the whole block with its network."""
    t = costs.symbol("t")
    yield without_cache() / with_cache(), t
    yield _at_length(usual(block_flops())) / _one_token(block_flops()), t


@step()
def _generation() -> Identities:
    r"""Over n tokens a cache leaves $8 n d^2 + 2 n (n + 1) d$ of $4 n (n + 1) d^2 + \frac{2}{3} n (n + 1)(2n + 1) d$,
    by induction on n.
    """
    n, t, d = costs.symbol("n"), costs.symbol("t"), costs.symbol("d")
    cached = 8 * n * d**2 + 2 * n * (n + 1) * d
    naive = 4 * n * (n + 1) * d**2 + sp.Rational(2, 3) * n * (n + 1) * (2 * n + 1) * d
    for per_step, whole in ((with_cache(), cached), (without_cache(), naive)):
        yield whole.subs(n, n + 1) - whole, per_step.subs(t, n + 1)
        yield whole.subs(n, 1), per_step.subs(t, 1)


@step()
def _size() -> Identities:
    """The cache holds $2 L G t d_k$ numbers, $2 t d$ per layer if every head has its keys, and $2 L G d_k$ more with
    every token.
    """
    layers, heads, t, d_k = (costs.symbol(name) for name in ("L", "H", "t", "d_k"))
    grouped = cache_numbers()
    yield symbolic_sum(2 * heads * t * d_k, index("l"), layers), grouped.subs(costs.symbol("G"), heads)
    yield grouped.subs(t, t + 1) - grouped, 2 * layers * costs.symbol("G") * d_k
    one_layer = grouped.subs({layers: 1, costs.symbol("G"): heads, d_k: costs.symbol("d") / heads}, simultaneous=True)
    yield symbolic_sum(2 * costs.symbol("d"), index("i"), t), one_layer


@step(scope=Scope.ENUMERATED, detail="one model")
def _worked() -> Identities:
    """For GPT-2 (12 layers, 12 heads of 64, 1,024 tokens) that is 18,874,368 numbers, 36 MiB at two bytes each; four
    key heads would leave 6,291,456 of them, and one 1,572,864.
    """
    # GPT-2: 12 layers, 12 heads of 64 features, 1,024 tokens.
    sizes = {"L": 12, "G": 12, "t": 1024, "d_k": 64}
    numbers = costs.evaluate(cache_numbers(), **sizes)
    yield symbolic_sum(sp.Integer(1_572_864), index("l"), 12), numbers
    yield symbolic_sum(2 * numbers, index("i"), 1), sp.Integer(36 * 2**20)
    for groups in (1, 4):
        shared = costs.evaluate(cache_numbers(), **(sizes | {"G": groups}))
        yield symbolic_sum(sp.Integer(1_572_864), index("g"), groups), shared


@step()
def _intensity() -> Identities:
    """A step does $2 H / (G w)$ FLOPs for each byte of the cache that it reads, whatever t is: one, at two bytes per
    number with a key head for each head. Sharing keys raises it, and so do fewer bytes.
    """
    # FLOPs per byte of the cache that a step reads: w bytes per number, H queries for G keys.
    b, heads, groups, w, d = (costs.symbol(name) for name in ("B", "H", "G", "w", "d_k"))
    read = costs.kv_cache_bytes().subs({b: 1, costs.symbol("d_v"): d})
    yield symbolic_sum(4 * heads * d, index("j"), costs.symbol("n_k")), 2 * heads / (groups * w) * read


@erratum(
    kind="imprecise",
    source=Source("003", _STAGE, 1044),
    printed=r"\text{K, V recomputation: } O(t \cdot d_{\text{model}}^2), \ \text{Total per step: } O(t^2 "
    r"\cdot d_{\text{model}})",
    corrected=r"O(t \cdot d_{\text{model}}^2 + t^2 \cdot d_{\text{model}}) \text{; the first part is the "
    r"larger one until } t = 2 d_{\text{model}}",
)
def _total_per_step() -> Evidence:
    t, d = costs.symbol("t"), costs.symbol("d")
    ratio = without_cache() / (t**2 * d)
    widths = [int(sp.simplify(ratio.subs({t: 10, d: width}))) for width in (100, 10_000)]
    crossing = 2 * d
    return Evidence(
        "t = 10: how often t² d goes into a step's FLOPs, at d = 100 and d = 10,000",
        (84, 84),
        tuple(widths),
        letters={"O": lambda x: x, "t": crossing, "d_model": d},
        values=(costs.order(without_cache()).subs(t, crossing),),
    )


@erratum(
    kind="imprecise",
    source=Source("003", _STAGE, 1061),
    printed=r"\text{without a cache, memory: } O(t \cdot d_{\text{model}}) \text{ per step}",
    corrected=r"O(t \cdot d_{\text{model}} + H t^2) \text{ with the score matrix that line 1066 names; "
    r"linear only if it is never written out}",
)
def _memory_of_scores() -> Evidence:
    heads, t, d = costs.symbol("H"), costs.symbol("t"), costs.symbol("d")
    ratio = heads * t**2 / (t * d)
    ends = [ratio.subs({heads: 12, d: 768, t: length}) for length in (64, 6400)]
    return Evidence(
        "12 heads, d = 768: scores over t d, at t = 64 and t = 6,400",
        (1, 1),
        tuple(ends),
        letters={"O": lambda x: x, "t": t, "H": heads, "d_model": d},
        values=(costs.order(_at_length(usual(costs.reference_attention_bytes()))),),
    )


@erratum(
    kind="imprecise",
    source=Source("003", _STAGE, 1156),
    printed=r"\text{First token: } O(d_{\text{model}}^2) \text{ (no cache)}",
    corrected=r"O(n \cdot d_{\text{model}}^2 + n^2 \cdot d_{\text{model}}) \text{ for a prompt of } n "
    r"\text{ tokens, which must all be read first}",
)
def _first_token() -> Evidence:
    d = costs.symbol("d")
    ratios = [int(_at_length(usual(heads_flops())).subs({costs.symbol("t"): n, d: 100}) / 10**4) for n in (1, 1000)]
    n = costs.symbol("n")
    return Evidence(
        "d = 100: how often d² goes into the FLOPs before the first token, for prompts of 1 and 1,000",
        (ratios[0], ratios[0]),
        tuple(ratios),
        letters={"O": lambda x: x, "n": n, "d_model": d},
        values=(costs.order(usual(heads_flops())),),
    )


@erratum(
    kind="imprecise",
    source=Source("000", "10.4", 360),
    printed=r"\text{eliminates } O(n^2) \text{ recomputation}",
    corrected=r"O(n^2) \text{ at step } n \text{, hence } O(n^3) \text{ over a text of } n \text{ tokens}",
)
def _saved_over_a_text() -> Evidence:
    n, t = costs.symbol("n"), costs.symbol("t")
    saved = (without_cache() - with_cache()).subs(costs.symbol("d"), 1)
    whole = sp.summation(saved, (t, 1, n))
    return Evidence(
        "d = 1: the power of n with which the operations saved over n tokens grow",
        2,
        sp.degree(whole, n),
        letters={"O": lambda x: x, "n": n},
        values=(n ** sp.degree(saved, t), n ** sp.degree(whole, n)),
    )


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    heads, width, t = (int(x) for x in rng.integers(1, 17, size=3))
    return {"d": heads * width, "heads": heads, "t": t}


EQUATIONS = (
    Equation(
        slug="cache-costs",
        number=None,
        title="What a cache costs and saves",
        statement=r"O(t^2 \cdot d_{\text{model}}) \text{ against } O(t \cdot d_{\text{model}}) \text{ per step, with } "
        r"O(L \cdot H \cdot t \cdot d_k) \text{ numbers kept}",
        sources=(
            Source("003", _STAGE, 1022),
            Source("003", _STAGE, 1042),
            Source("003", _STAGE, 1079),
            Source("003", _STAGE, 1157),
            Source("003", _STAGE, 1168),
            Source("000", "10.4", 360),
        ),
        symbols=(
            Symbol("t", r"\mathbb{N}", "the number of tokens so far, the new one among them"),
            Symbol("L, H, G", r"\mathbb{N}", "layers, heads, key heads"),
            Symbol(r"d_{\text{model}}, d", r"\mathbb{N}", "the width of the model", "H times d_k"),
        ),
        assumptions=(
            Assumption("the heads divide the width of the model", lambda a: a["d"] % a["heads"] == 0),
            Assumption("there is a token", lambda a: a["t"] > 0),
        ),
        sample=_sample,
        steps=(_steps, _speedup, _generation, _size, _worked, _intensity),
        costs={
            "FLOPs of a step": with_cache,
            "FLOPs of a step without a cache": without_cache,
            "numbers kept": cache_numbers,
            "FLOPs of the projections": projection_flops,
        },
        errata=(_total_per_step, _memory_of_scores, _first_token, _saved_over_a_text),
    ),
)
