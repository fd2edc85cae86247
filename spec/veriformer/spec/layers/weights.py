"""Number of weights of a layer and of a whole model (document 003, stage 6; document 002, section 6.1)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import network_flops, network_parameters
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.heads.weights import weight_count
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import index, symbolic_sum
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.published import rounds_to

# Vocabulary, positions, layers and width of document 003, line 237.
GPT2 = {"V": 50257, "n": 1024, "L": 12, "d": 768}


def feed_forward_weights(xp: Any, d: int, d_ffn: int, biases: bool = False) -> Any:
    """2 d d_ffn, and d_ffn + d more with biases."""
    d = xp.asarray(d)
    weights = d * d_ffn * 2
    return weights + d + d_ffn if biases else weights


def gpt2_weights(xp: Any, vocabulary: int, positions: int, layers: int, d: int) -> Any:
    """V d + n d for the tables, 12 d² + 13 d for each layer, 2 d for the last norm; the output is tied to the table.

    A layer has four projections with biases, a network of two layers with d_ffn = 4 d, and two norms.
    """
    d = xp.asarray(d)
    return d * vocabulary + d * positions + (d * d * 12 + d * 13) * layers + d * 2


def _block() -> Any:
    """Weights of one block, counted part by part: projections, network, norms."""
    d, h = costs.symbol("d"), costs.symbol("H")
    heads = weight_count().subs({costs.symbol(x): y for x, y in (("G", h), ("d_k", d / h), ("d_v", d / h))})
    return heads + 4 * d + _network(d) + 2 * (2 * d)


def _network(d: Any) -> Any:
    return network_parameters().subs({costs.symbol("f"): 4 * d, costs.symbol("o"): d}, simultaneous=True)


def _model() -> Any:
    """The whole model: tables, blocks and the last norm."""
    v, n, layers, d = (costs.symbol(name) for name in ("V", "n", "L", "d"))
    return sp.expand(v * d + n * d + layers * sp.simplify(_block()) + 2 * d)


@step()
def _expansion() -> Identities:
    """4 d hidden units read d numbers each, $4 d^2$ weights, and write d: $8 d^2$, and with biases $8 d^2 + 5 d$."""
    d, c = costs.symbol("d"), index("c")
    yield symbolic_sum(d, c, 4 * d), 4 * d**2
    yield 2 * symbolic_sum(d, c, 4 * d), 8 * d**2
    yield computed(feed_forward_weights, AnyLength(), d, 4 * d).then(entry()), 2 * symbolic_sum(d, c, 4 * d)
    yield computed(feed_forward_weights, AnyLength(), d, 4 * d, biases=True).then(entry()), _network(d)


@step()
def _share() -> Identities:
    r"""Of the $4 d^2 + 8 d^2$ weights of a block that are $\frac{2}{3}$; with biases and norms, of $12 d^2 + 13 d$, a
    little less.
    """
    d = costs.symbol("d")
    yield 8 * d**2 / (4 * d**2 + 8 * d**2), sp.Rational(2, 3)
    yield _block(), 12 * d**2 + 13 * d
    yield sp.Rational(2, 3) - _network(d) / _block(), (11 * d) / (3 * (12 * d**2 + 13 * d))


@step(scope=Scope.ENUMERATED, detail="the one width that the document names")
def _example() -> Identities:
    """For d = 768: 4,718,592 weights, or 4,722,432 with biases, both 4.7 million."""
    yield sp.Mul(2, 768, 3072, evaluate=False), 4718592
    yield rounds_to(sp.Rational(2 * 768 * 3072, 10**6), "4.7")
    yield rounds_to(sp.Rational(2 * 768 * 3072 + 3072 + 768, 10**6), "4.7")


@step()
def _work() -> Identities:
    r"""For n tokens it takes $4 n d \, d_{\text{ffn}}$ FLOPs, and $16 n d^2$ where $d_{\text{ffn}} = 4 d$, linear in n
    and quadratic in d; attention and its projections take $4 n d (2 d - n)$ less. Beyond n = 2d attention takes more.
    """
    n, d, wide = costs.symbol("N"), costs.symbol("d"), costs.symbol("f")
    yield network_flops().subs(costs.symbol("o"), d), symbolic_sum(2 * d * wide, index("i"), 2 * n)
    flops = network_flops().subs({wide: 4 * d, costs.symbol("o"): d}, simultaneous=True)
    yield flops, 16 * n * d**2
    # Attention with its projections takes 8 n d² + 4 n² d.
    yield flops - (8 * n * d**2 + 4 * n**2 * d), 4 * n * d * (2 * d - n)


@step()
def _parts() -> Identities:
    """The tables of tokens and of positions, the blocks, and the last norm; the output layer is the table of tokens
    again and adds nothing. The number of heads plays no part.
    """
    v, n, layers, d = (costs.symbol(name) for name in ("V", "n", "L", "d"))
    layer = index("l")
    counted = v * d + n * d + symbolic_sum(_block(), layer, layers) + 2 * d
    yield computed(gpt2_weights, AnyLength(), v, n, layers, d).then(entry()), counted


@step(scope=Scope.ENUMERATED, detail="the one model that the document specifies")
def _gpt2() -> Identities:
    """With the sizes of the document these are 124,439,808: the model that is called 124M."""
    count = computed(costs.evaluate, _model(), **GPT2)
    yield count, 124439808
    yield rounds_to(count.value / 10**6, "124")


@step(scope=Scope.ENUMERATED, detail="the one model that the document specifies")
def _gpt2_share() -> Identities:
    """56,669,184 of them, 45.5 percent, are in feed-forward networks, and 31.6 percent in the tables."""
    networks = computed(costs.evaluate, costs.symbol("L") * _network(costs.symbol("d")), **GPT2)
    yield networks, 56669184
    yield rounds_to(networks.value / sp.Integer(124439808), "0.455")
    tables = (GPT2["V"] + GPT2["n"]) * GPT2["d"]
    yield rounds_to(sp.Rational(tables, 124439808), "0.316")


@erratum(
    kind="imprecise",
    source=Source("003", "11", 1193),
    printed=r"\text{Contains majority of model parameters (~2/3 in standard architectures)}",
    corrected=r"\text{2/3 of the weights of the blocks; of GPT-2, with its tables, 46 percent}",
)
def _not_the_majority_of_a_model() -> Evidence:
    d = GPT2["d"]
    share = Fraction(GPT2["L"] * (8 * d * d + 5 * d), 124439808)
    return Evidence(
        "GPT-2 as specified in line 237: a majority of the weights is in its networks", True, share > Fraction(1, 2)
    )


@erratum(
    kind="imprecise",
    source=Source("003", "6, Tensor Shapes Example", 484),
    printed=r"\text{Pos Embed: [4, 768] (slice from [2048, 768])}",
    corrected=r"\text{[1024, 768] for the model of lines 239 to 242, whose vocabulary and width these are; another "
    r"may have "
    r"2048 positions}",
)
def _two_numbers_of_positions() -> Evidence:
    return Evidence("the positions of a model with 50,257 tokens and width 768", 2048, GPT2["n"])


def _sample_layer(rng: np.random.Generator) -> dict[str, Any]:
    d, d_ffn = (int(x) for x in rng.integers(1, 100, size=2))
    return {"d": d, "d_ffn": d_ffn, "biases": bool(rng.integers(2))}


def _sample_model(rng: np.random.Generator) -> dict[str, Any]:
    names = ("vocabulary", "positions", "layers", "d")
    return {name: int(x) for name, x in zip(names, rng.integers(1, 100, size=4), strict=True)}


_POSITIVE = Assumption("all sizes are positive", lambda a: min(int(x) for k, x in a.items() if k != "biases") >= 1)
_WIDTH = Symbol(r"d_{\text{model}}, d", r"\mathbb{N}", "the width of the model")

EQUATIONS = (
    Equation(
        slug="feed-forward-weights",
        number=None,
        title="The weights of a feed-forward network",
        statement=r"d_{\text{model}} \times d_{\text{ffn}} + d_{\text{ffn}} \times d_{\text{model}} = "
        r"8d_{\text{model}}^2",
        sources=(
            Source("003", "11, Mathematical Formulation", 1314),
            Source("003", "11, Mathematical Formulation", 1316),
            Source("003", "11, Mathematical Formulation", 1324),
        ),
        symbols=(_WIDTH, Symbol(r"d_{\text{ffn}}", r"\mathbb{N}", "the hidden width", "4 d in the statement")),
        assumptions=(_POSITIVE,),
        sample=_sample_layer,
        formula=feed_forward_weights,
        steps=(_expansion, _share, _example, _work),
        costs={"parameters": network_parameters, "FLOPs": network_flops},
        errata=(_not_the_majority_of_a_model,),
    ),
    Equation(
        slug="gpt2-weights",
        number=None,
        title="The weights of GPT-2",
        statement=r"V d + n d + L (12 d^2 + 13 d) + 2 d",
        sources=(Source("003", "4, Model Hyperparameters and Complexity", 237),),
        symbols=(
            _WIDTH,
            Symbol("V", r"\mathbb{N}", "the size of the vocabulary", "50,257"),
            Symbol("n", r"\mathbb{N}", "the number of positions", "1,024"),
            Symbol("L", r"\mathbb{N}", "the number of layers", "12"),
        ),
        assumptions=(_POSITIVE,),
        sample=_sample_model,
        formula=gpt2_weights,
        steps=(_parts, _gpt2, _gpt2_share),
        costs={"parameters": _model},
        errata=(_two_numbers_of_positions,),
    ),
)
