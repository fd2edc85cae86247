"""Costs of a whole model: L blocks of width d over a vocabulary of V, its table tied to the head (003, 4 and 9).

Heads of width d / H, a network of 4 d, one text of n tokens, w bytes per element, a table of c learned positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.blocks.costs_block import block_flops, block_parameters, usual
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.proofs.indexed import index, positive, symbolic_sum
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.published import rounds_to

GPT2 = {"V": 50257, "L": 12, "H": 12, "d": 768, "n": 1024, "c": 1024, "w": 2}


def _letters(names: str) -> list[Any]:
    return [costs.symbol(name) for name in names.split()]


def matrix_weights() -> Any:
    """The weights that are multiplied with every token: 12 L d² in the blocks, V d in the head."""
    v, layers, d = _letters("V L d")
    return 12 * layers * d**2 + v * d


def parameters() -> Any:
    """Both tables, the blocks, and weight and bias of the last norm; the head is the table of tokens again."""
    v, layers, d, c = _letters("V L d c")
    return sp.expand(v * d + c * d + layers * usual(block_parameters()) + 2 * d)


def forward_flops() -> Any:
    """The blocks over n tokens, every score computed, and the logits of every token."""
    v, layers, d, n = _letters("V L d n")
    return sp.expand(layers * usual(block_flops()) + 2 * n * d * v)


def causal_flops() -> Any:
    """Return the forward FLOPs without scores that a causal mask hides: n (n + 1) / 2 pairs instead of n²."""
    layers, d, n = _letters("L d n")
    return sp.expand(forward_flops() - layers * 4 * d * (n**2 - n * (n + 1) / 2))


def training_flops() -> Any:
    """Forward, and the two products that each product has in the backward pass."""
    return 3 * forward_flops()


def step_flops() -> Any:
    """Return the FLOPs for a new token, the n-th, with a cache of the others."""
    v, layers, d, n = _letters("V L d n")
    return layers * (24 * d**2 + 4 * n * d) + 2 * d * v


def cache_bytes() -> Any:
    """Keys and values of n tokens in every block."""
    layers, d, n, w = _letters("L d n w")
    return 2 * w * layers * n * d


def step_bytes() -> Any:
    """Every weight of blocks, last norm and head once, and the cache: the floor of a decoding step."""
    d, c, w = _letters("d c w")
    return sp.expand(w * (parameters() - c * d)) + cache_bytes()


def kept_bytes() -> Any:
    """Return the bytes for the backward pass of a block: 16 d numbers a token, and scores and weights as printed.

    Two inputs of norms, what the norms gave, queries, keys, values, the heads' output, and the network's hidden layer
    before and after its activation: d (2 + 2 + 3 + 1 + 4 + 4).
    """
    heads, d, n, w = _letters("H d n w")
    return w * (16 * n * d + 2 * heads * n**2)


def training_peak() -> Any:
    """Return the peak bytes of training: all that the blocks keep, and the logits with their gradient."""
    v, layers, n, w = _letters("V L n w")
    return layers * kept_bytes() + 2 * w * n * v


def checkpointed_peak() -> Any:
    """Only the input of every block is kept, and one block at a time is computed again."""
    v, layers, d, n, w = _letters("V L d n w")
    return w * layers * n * d + kept_bytes() + 2 * w * n * v


COSTS = {
    "parameters": parameters,
    "FLOPs": forward_flops,
    "FLOPs, causal": causal_flops,
    "FLOPs of a training step": training_flops,
    "FLOPs of a decoding step": step_flops,
    "bytes of a decoding step": step_bytes,
    "bytes of the cache": cache_bytes,
    "peak extra bytes of a training step": training_peak,
    "peak extra bytes, checkpointed": checkpointed_peak,
}


@step()
def _cache_saves_nothing_once() -> Identities:
    """Decoding n tokens one by one with a cache takes exactly the FLOPs of one causal pass over all of them: what the
    cache saves is repeating that pass for every token.
    """
    t, n = index("t"), costs.symbol("n")
    yield symbolic_sum(step_flops().subs(n, t), t, n), causal_flops()


@step()
def _six_n() -> Identities:
    """With M weights in matrices a training step on n tokens takes $6 M n + 12 L n^2 d$: the rule of six FLOPs per
    weight and token leaves out the scores. A decoding step takes $2 M + 4 L n d$.
    """
    layers, d, n = _letters("L d n")
    yield training_flops(), 6 * matrix_weights() * n + 12 * layers * n**2 * d
    yield step_flops(), 2 * matrix_weights() + 4 * layers * n * d


@step()
def _slope() -> Identities:
    r"""On logarithmic axes the cost rises in n with slope $1 + \frac{4 L n}{24 L d + 2 V + 4 L n}$: 1 for short texts,
    2 for long ones, and $\frac{3}{2}$ at $n = 6 d + \frac{V}{2 L}$.
    """
    v, layers, d, n = _letters("V L d n")
    slope = n * sp.diff(forward_flops(), n) / forward_flops()
    linear, square = 24 * layers * d + 2 * v, 4 * layers * n
    yield sp.simplify(slope), 1 + square / (linear + square)
    yield sp.simplify(slope.subs(n, linear / (4 * layers))), sp.Rational(3, 2)


@step()
def _vocabulary() -> Identities:
    """Every token more in the vocabulary costs $2 n d$ FLOPs more, in the head, and d weights: larger vocabularies cost
    more per token.
    """
    v, d, n = _letters("V d n")
    yield forward_flops().subs(v, v + 1) - forward_flops(), 2 * n * d
    yield parameters().subs(v, v + 1) - parameters(), d


@step()
def _intensity() -> Identities:
    """A decoding step does two FLOPs for each number that it reads, weights of matrices and cache alike, and $2 d (9 L
    + 2)$ fewer for norms and biases: it waits for memory, whatever the sizes.
    """
    layers, d, n, w = _letters("L d n w")
    numbers = sp.expand(step_bytes() / w)
    yield numbers, matrix_weights() + 9 * layers * d + 2 * d + 2 * layers * n * d
    yield sp.expand(step_flops() - 2 * matrix_weights()), 2 * sp.expand(cache_bytes() / w)
    yield sp.expand(2 * numbers - step_flops()), 2 * d * (9 * layers + 2)


@step()
def _segments() -> Identities:
    r"""Checkpoints after every s-th of L blocks keep $L / s + s$ inputs, at least $2 \sqrt{L}$, reached at $s =
    \sqrt{L}$: $L / s + s - 2 \sqrt{L} = (\sqrt{L} - s)^2 / s$.
    """
    layers, s = positive("L s")
    yield layers / s + s - 2 * sp.sqrt(layers), (sp.sqrt(layers) - s) ** 2 / s


@step(scope=Scope.ENUMERATED, detail="the sizes that the document names, two bytes per element")
def _gpt_2() -> Identities:
    """GPT-2 reads 1,024 tokens with 292 GFLOPs, and writes the next with 0.285; its cache then holds 37.7 MB in two
    bytes per number. The scores, which six per weight leaves out, are 13 percent.
    """
    yield computed(costs.evaluate, forward_flops(), **GPT2), 291648307200
    yield computed(costs.evaluate, step_flops(), **GPT2), 284812800
    yield computed(costs.evaluate, cache_bytes(), **GPT2), 37748736
    share = 12 * GPT2["L"] * GPT2["n"] ** 2 * GPT2["d"] / costs.evaluate(training_flops(), **GPT2)
    yield share, sp.Rational(24576, 185425)
    yield rounds_to(share, "0.13")


@erratum(
    kind="imprecise",
    source=Source("003", "5, Challenges", 344),
    printed=r"\text{Larger vocabularies reduce sequence length but increase computational cost}",
    corrected=r"\text{every entry more costs } 2 d \text{ FLOPs for each token; what a text costs may fall, as it has "
    r"fewer tokens}",
)
def _fewer_tokens_may_cost_less() -> Evidence:
    large = costs.evaluate(forward_flops(), **GPT2)
    small = costs.evaluate(forward_flops(), **{**GPT2, "V": 256, "n": 2 * GPT2["n"]})
    v, d, n = _letters("V d n")
    return Evidence(
        "GPT-2, 1,024 tokens of 50,257 against the same text in 2,048 of 256: the larger vocabulary costs more",
        True,
        large > small,
        letters={"d": d},
        values=(sp.expand(forward_flops().subs(v, v + 1) - forward_flops()) / n,),
    )


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    heads, width = (int(x) for x in rng.integers(1, 17, size=2))
    return {"d": heads * width, "heads": heads, "inner": 4 * heads * width, "tied": True}


EQUATIONS = (
    Equation(
        slug="model-costs",
        number=None,
        title="The costs of a whole model",
        statement=r"C(n) = L (24 n d^2 + 4 n^2 d) + 2 n d V",
        sources=(
            Source("003", "4, Model Hyperparameters and Complexity", 237),
            Source("003", "9, Multi-Head Attention Mathematical Formulation", 986),
        ),
        symbols=(
            Symbol("C", r"\mathbb{N}", "FLOPs of the forward pass over n tokens"),
            Symbol("L", r"\mathbb{N}", "the number of blocks"),
            Symbol("d", r"\mathbb{N}", "the width of the model"),
            Symbol("V", r"\mathbb{N}", "the size of the vocabulary"),
            Symbol("n", r"\mathbb{N}", "the number of tokens"),
            Symbol("c", r"\mathbb{N}", "the number of learned positions"),
            Symbol("w", r"\mathbb{N}", "bytes per element"),
        ),
        assumptions=(
            Assumption("the heads divide the width of the model", lambda a: a["d"] % a["heads"] == 0),
            Assumption("the network is four times as wide as the model", lambda a: a["inner"] == 4 * a["d"]),
            Assumption("the head is tied to the table of tokens", lambda a: bool(a["tied"])),
        ),
        sample=_sample,
        steps=(_cache_saves_nothing_once, _six_n, _slope, _vocabulary, _intensity, _segments, _gpt_2),
        costs=COSTS,
        errata=(_fewer_tokens_may_cost_less,),
    ),
)
