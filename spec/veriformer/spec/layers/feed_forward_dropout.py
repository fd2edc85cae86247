"""Dropout inside the feed-forward network (equation 47)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from veriformer.spec.costs import NETWORK
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Source, erratum, step
from veriformer.spec.layers.activations import PRINTED
from veriformer.spec.layers.dropout import PROBABILITY, expected, factor_moment
from veriformer.spec.layers.dropout import SYMBOLS as DROPOUT_SYMBOLS
from veriformer.spec.layers.feed_forward import (
    SHAPES,
    SYMBOLS,
    feed_forward,
    feed_forward_vjp,
    sample,
)
from veriformer.spec.proofs.any_length import AnyLength, entry, mask
from veriformer.spec.proofs.indexed import dimension, index, positive, real, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks


def _sample_dropped(rng: np.random.Generator) -> dict[str, Any]:
    a, p = sample(rng, "gelu"), float(rng.uniform(0, 0.9))
    return {**a, "dropout_p": p, "keep": rng.random((2, 3, a["w1"].shape[1])) >= p}


@step()
def _mean() -> Identities:
    """Since only a linear layer follows, the mean over all masks is the output without dropout."""
    p, b, c = real("p"), real("b"), index("c")
    h, w, f = vector("h"), vector("w"), dimension("f")
    yield (
        computed(expected, lambda m: m * h[c], p).then(lambda mean: symbolic_sum(mean * w[c], c, f) + b),
        symbolic_sum(h[c] * w[c], c, f) + b,
    )


@step()
def _variance() -> Identities:
    r"""Its variance is $\frac{p}{1 - p} \sum_c h_c^2 W_{2,cb}^2$: noise in proportion to what each hidden unit adds,
    hence dearest where few units do all the work.
    """
    (a, c), p, f = index("a c"), real("p"), dimension("f")
    h, w = vector("h"), vector("w")
    square = symbolic_sum(symbolic_sum(factor_moment(a, c, p) * h[a] * w[a] * h[c] * w[c], a, f), c, f)
    yield square - symbolic_sum(h[a] * w[a], a, f) ** 2, p / (1 - p) * symbolic_sum(h[a] ** 2 * w[a] ** 2, a, f)


@step()
def _any_vjp() -> Identities:
    """The vector-Jacobian product is the derivative that SymPy takes of the formula, for all sizes."""
    arguments = {"x": "n d", "w1": "d f", "b1": "f", "w2": "f o", "b2": "o"}
    yield from pullbacks(feed_forward, feed_forward_vjp, arguments, dropout_p=positive("p"), keep=mask("b", "n", "f"))


@step()
def _any_length() -> Identities:
    """Dropout acts on the hidden entries after GELU, for all sizes and every mask b; biases added, rows as vectors."""
    xp, n, d, wide, (i, k, c, a), p = AnyLength(), *map(dimension, "ndf"), index("i k c a"), real("p")
    layers = xp.array("W", d, wide), xp.array("s", wide), xp.array("U", wide, d), xp.array("c", d)
    z = symbolic_sum(vector("x")[i, a] * vector("W")[a, c], a, d) + vector("s")[c]
    y = computed(feed_forward, xp, xp.array("x", n, d), *layers, dropout_p=p, keep=xp.array("b", n, wide))
    hidden = PRINTED["gelu"](z) * vector("b")[i, c] / (1 - p)
    yield y.then(entry(i, k)), symbolic_sum(hidden * vector("U")[c, k], c, wide) + vector("c")[k]


@erratum(
    kind="imprecise",
    source=Source("000", "11.1", 384),
    printed=r"\text{FFN Dropout: Applied after first linear transformation}",
    corrected=r"\text{applied after the activation, as (47) has it: GELU does not commute with a factor}",
)
def _after_the_activation() -> Evidence:
    after, before = (round(scale * x * math.erfc(-x / math.sqrt(2)) / 2, 3) for scale, x in ((2.0, 1.0), (1.0, 2.0)))
    return Evidence("x W₁ = 1 is kept, p = 1/2, dropout between the first product and GELU", before, after)


EQUATIONS = (
    Equation(
        slug="feed-forward-dropout",
        number="47",
        title="Dropout in the feed-forward network",
        statement=r"\text{FFN}(\mathbf{x}) = W_2 \cdot \text{Dropout}(\text{GELU}(W_1 \mathbf{x}))",
        sources=(Source("000", "11.1", 386), Source("001", "11.1", 498)),
        symbols=(*SYMBOLS, *DROPOUT_SYMBOLS),
        assumptions=(
            *SHAPES,
            Assumption(PROBABILITY.text, lambda a: 0 <= a["dropout_p"] < 1),
        ),
        sample=_sample_dropped,
        formula=feed_forward,
        vjp=feed_forward_vjp,
        steps=(_mean, _variance, _any_length, _any_vjp),
        costs=NETWORK,
        errata=(_after_the_activation,),
    ),
)
