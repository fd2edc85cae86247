"""The complexity of attention, as printed and in blocks (documents 000 and 001, sections 10.1 and 10.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.equation import Assumption, Equation, Identities, Source, Symbol, step
from veriformer.spec.proofs.indexed import index, symbolic_sum


def square(cost: Any, heads: Any = 1) -> Any:
    """Return the cost for a text of n tokens with `heads` heads of width d / heads."""
    n, d = costs.symbol("n"), costs.symbol("d")
    sizes = {"B": 1, "H": heads, "G": heads, "n_q": n, "n_k": n, "d_k": d / heads, "d_v": d / heads}
    return cost.subs({costs.symbol(name): size for name, size in sizes.items()}, simultaneous=True)


@step()
def _time() -> Identities:
    """Scores and output take $2 n^2 d$ FLOPs each, and softmax $6 n^2$ other operations per head: together $O(n^2 d)$,
    whatever the number of heads. Projections are not counted here (27).
    """
    n, d, i = costs.symbol("n"), costs.symbol("d"), index("i")
    yield square(costs.score_flops()), symbolic_sum(2 * n * d, i, n)
    yield square(costs.value_flops()), symbolic_sum(2 * n * d, i, n)
    yield square(costs.attention_other()), symbolic_sum(6 * n, i, n)
    yield square(costs.attention_flops(), costs.symbol("H")), symbolic_sum(4 * n * d, i, n)


@step()
def _space() -> Identities:
    """Scores and weights take $2 n^2$ numbers per head, arguments and result $4 n d$: together $O(n^2 + n d)$ for one
    head, $O(H n^2 + n d)$ for H of them, and from $n = 2 d$ on the former are more.
    """
    n, d, i, w = costs.symbol("n"), costs.symbol("d"), index("i"), costs.symbol("w")
    written = square(costs.reference_attention_peak())
    yield written, symbolic_sum(2 * n * w, i, n)
    heads = costs.symbol("H")
    yield square(costs.attention_bytes(), heads), symbolic_sum(4 * d * w, i, n)
    yield square(costs.reference_attention_peak(), heads), symbolic_sum(2 * n**2 * w, i, heads)
    # By how much scores and weights are more than the arguments and the result.
    yield written - square(costs.attention_bytes()), 2 * n * w * (n - 2 * d)


@step()
def _doubling() -> Identities:
    """Twice the text is four times the work and four times the memory: running in parallel divides the time, but not
    the work.
    """
    n = costs.symbol("n")
    for cost in (costs.attention_flops, costs.reference_attention_peak):
        yield square(cost()).subs(n, 2 * n), symbolic_sum(square(cost()), index("i"), 4)


@step()
def _tiles() -> Identities:
    r"""In blocks of $T \times T$ a token more takes two numbers more, for its maximum and its sum: linear in n. What is
    saved is $2 (n (n - 1) - T^2)$ numbers per head.
    """
    n, t, w = costs.symbol("n"), costs.symbol("T"), costs.symbol("w")
    tiled = square(costs.tiled_attention_peak())
    yield tiled.subs(n, n + 1) - tiled, 2 * w
    yield square(costs.reference_attention_peak()) - tiled, 2 * w * (n * (n - 1) - t**2)


@step()
def _once_more() -> Identities:
    """The price is paid in the backward pass: the scores once more, $2 n^2 d$ FLOPs, which makes it 5/4 of what it was.
    The forward pass recomputes nothing.
    """
    n, d = costs.symbol("n"), costs.symbol("d")
    again = square(costs.tiled_backward_flops() - costs.attention_backward_flops())
    yield again, symbolic_sum(2 * n * d, index("i"), n)
    tiled, plain = square(costs.tiled_backward_flops()), square(costs.attention_backward_flops())
    yield symbolic_sum(tiled, index("i"), 4), symbolic_sum(plain, index("i"), 5)


@step()
def _moved() -> Identities:
    """$4 n^2$ numbers per head less are moved: scores and weights are neither written nor read."""
    n, w = costs.symbol("n"), costs.symbol("w")
    yield square(costs.reference_attention_bytes() - costs.attention_bytes()), symbolic_sum(4 * n * w, index("i"), n)


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    heads, width, n = (int(x) for x in rng.integers(1, 17, size=3))
    return {"d": heads * width, "heads": heads, "n": n}


EQUATIONS = (
    Equation(
        slug="attention-costs",
        number=None,
        title="The complexity of attention",
        statement=r"\text{Time: } O(n^2 d), \quad \text{Space: } O(n^2 + nd), \quad \text{FlashAttention: } O(n) "
        r"\text{ memory}",
        sources=(
            Source("000", "10.1", 248),
            Source("000", "10.1", 261),
            Source("000", "10.2", 292),
            Source("001", "10.1", 308),
            Source("001", "10.2", 369),
        ),
        symbols=(
            Symbol("n", r"\mathbb{N}", "the number of tokens"),
            Symbol("d", r"\mathbb{N}", "the width of the model"),
            Symbol("T", r"\mathbb{N}", "the edge of a block"),
            Symbol("w", r"\mathbb{N}", "bytes per number"),
        ),
        assumptions=(
            Assumption("the heads divide the width of the model", lambda a: a["d"] % a["heads"] == 0),
            Assumption("there is a token", lambda a: a["n"] > 0),
        ),
        sample=_sample,
        steps=(_time, _space, _doubling, _tiles, _once_more, _moved),
        costs=costs.lazily("attention"),
    ),
)
