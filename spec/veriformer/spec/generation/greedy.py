"""Greedy choice: the token of the highest probability (document 003, section 12)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import GREEDY
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.generation.choices import highest
from veriformer.spec.generation.top_k_filter import WEIGHTS, kept, logs
from veriformer.spec.proofs.indexed import dimension, index, symbolic_sum
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.scores.softmax import weight


def greedy(logits: Any) -> NDArray[np.int64]:
    """arg max_i p_i over the last axis of logits [..., V], which is that of the logits; the lowest of equals."""
    return highest(logits)


@step()
def _at_least_average() -> Identities:
    r"""$n p_i - 1 = \sum_j (p_i - p_j)$, which is not negative for the largest: greedy decoding takes a token of
    probability $1/V$ at least, for any V.
    """
    i, j, n = index("i"), index("j"), dimension("n")
    yield n * weight(i) - 1, symbolic_sum(weight(i) - weight(j), j, n)


@step(scope=Scope.ENUMERATED, detail="eight distributions of up to 4 tokens, with and without ties")
def _top_one() -> Identities:
    """Greedy choice is top-k with k = 1, and takes the largest."""
    xp = Symbolic()
    for weights in WEIGHTS:
        z = xp.asarray(logs(weights))
        yield computed(kept, xp, weights, 1).then(lambda one: int(np.flatnonzero(one)[0])), sp.Integer(int(greedy(z)))
        yield sp.Integer(weights[int(greedy(z))]), sp.Max(0, *weights, evaluate=False)


EQUATIONS = (
    Equation(
        slug="greedy",
        number=None,
        title="Greedy decoding",
        statement=r"\text{next token} = \mathrm{arg}\max_{i} p_i",
        sources=(Source("003", "12, Mathematical Formulation", 1478),),
        symbols=(Symbol("p", r"(0, 1]^V", "the probabilities of the next token"),),
        assumptions=(Assumption("there is a token", lambda a: a["logits"].shape[-1] > 0),),
        sample=lambda rng: {"logits": rng.normal(size=(2, int(rng.integers(1, 7))))},
        steps=(_at_least_average, _top_one),
        costs=GREEDY,
    ),
)
