"""Costs of the operations, as SymPy expressions in the letters of the contract.

FLOPs count matrix products only, a multiplication and an addition as two, which is what torch's FlopCounterMode counts.
Other operations count every elementwise addition, multiplication, division, comparison, root and transcendental as one.
Bytes are those that must move at least (each argument read once, each result written once); peak extra bytes are
what is alive at the same time beside arguments and results. An element has w bytes, statistics included.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp


def symbol(name: str) -> Any:
    """The letter of a size: B, H, G, n_q, n_k, d_k, d_v, d, V, N, T (block size) or w (bytes per element)."""
    return sp.Symbol(name, integer=True, positive=True)


def elasticity(cost: Any, size: str, at: dict[str, Any]) -> Any:
    """∂ log C / ∂ log n at a point: the slope that a log-log plot of the cost has there."""
    n = symbol(size)
    return evaluate(sp.simplify(n * sp.diff(cost, n) / cost), **at)


def evaluate(cost: Any, **sizes: Any) -> Any:
    """The cost with numbers for its letters; every letter needs one."""
    value = cost.subs({symbol(name): size for name, size in sizes.items()})
    if value.free_symbols:
        raise ValueError(f"sizes: expected also {', '.join(sorted(s.name for s in value.free_symbols))}")
    return value


def order(cost: Any) -> Any:
    """The monomials of a cost in sizes, without their factors, as O(…) prints them; bytes per element do not count."""
    terms = sp.Poly(sp.expand(cost.subs(symbol("w"), 1))).monoms()
    letters = sp.Poly(sp.expand(cost.subs(symbol("w"), 1))).gens
    return sum(sp.prod(x**k for x, k in zip(letters, powers, strict=True)) for powers in terms)


def _sizes(names: str) -> list[Any]:
    return [symbol(name) for name in names.split()]


def _pairs() -> Any:
    b, h, n_q, n_k = _sizes("B H n_q n_k")
    return b * h * n_q * n_k


def causal_pairs() -> Any:
    """Visible pairs of one head under a causal mask, n_q ≤ n_k: n_q n_k − n_q (n_q − 1) / 2."""
    n_q, n_k = _sizes("n_q n_k")
    return n_q * n_k - n_q * (n_q - 1) / 2


def causal_block_pairs() -> Any:
    """Pairs of one head in the n × n causal case that lie in blocks of T × T with a visible pair, T dividing n."""
    n_q, t = _sizes("n_q T")
    return n_q * (n_q + t) / 2


def score_flops() -> Any:
    """Q Kᵀ: 2 B H n_q n_k d_k."""
    return 2 * _pairs() * symbol("d_k")


def value_flops() -> Any:
    """P V: 2 B H n_q n_k d_v."""
    return 2 * _pairs() * symbol("d_v")


def attention_flops() -> Any:
    """Scores and output: 2 B H n_q n_k (d_k + d_v)."""
    return sp.factor(score_flops() + value_flops())


def attention_backward_flops() -> Any:
    """dV, dP, dQ and dK, twice the forward pass: 4 B H n_q n_k (d_k + d_v)."""
    return 2 * attention_flops()


def tiled_backward_flops() -> Any:
    """The scores once more, then dV, dP, dQ and dK: 2 B H n_q n_k (3 d_k + 2 d_v)."""
    d_k, d_v = _sizes("d_k d_v")
    return 2 * _pairs() * (3 * d_k + 2 * d_v)


def tiled_causal_flops() -> Any:
    """The tiled forward pass over n_q = n_k, skipping blocks of T × T that the causal mask hides as a whole."""
    b, h, d_k, d_v = _sizes("B H d_k d_v")
    return 2 * b * h * causal_block_pairs() * (d_k + d_v)


def attention_other() -> Any:
    """Scale, maximum, subtraction, exponential, sum and division of every score."""
    return 6 * _pairs()


def attention_bytes() -> Any:
    """Read Q, K and V, write O."""
    b, h, g, n_q, n_k, d_k, d_v, w = _sizes("B H G n_q n_k d_k d_v w")
    return w * b * (h * n_q * (d_k + d_v) + g * n_k * (d_k + d_v))


def reference_attention_bytes() -> Any:
    """The formula as printed writes and reads the scores and the weights once each besides."""
    return attention_bytes() + 4 * _pairs() * symbol("w")


def reference_attention_peak() -> Any:
    """Scores and weights at the same time: 2 B H n_q n_k elements."""
    return 2 * _pairs() * symbol("w")


def tiled_attention_peak() -> Any:
    """The statistics (m, l) of every row and one block of scores and weights: linear in n_q, constant in n_k."""
    b, h, n_q, t, w = _sizes("B H n_q T w")
    return w * b * h * (2 * n_q + 2 * t * t)


def kv_cache_bytes() -> Any:
    """Keys and values of G groups: B G n_k (d_k + d_v) elements; G = H is multi-head, G = 1 multi-query."""
    b, g, n_k, d_k, d_v, w = _sizes("B G n_k d_k d_v w")
    return w * b * g * n_k * (d_k + d_v)


def rowwise(passes: int, *, arrays: int = 2, parameters: int = 0, kept: int = 0) -> dict[str, Any]:
    """Costs of an operation over N rows of d elements that does `passes` elementwise operations on each element.

    arrays are read or written in full, parameters are vectors of d, kept are extra elements per row.
    """
    n, d, w = _sizes("N d w")
    return {
        "FLOPs": sp.S.Zero,
        "other operations": passes * n * d,
        "bytes": w * (arrays * n * d + parameters * d),
        "peak extra bytes": w * kept * n,
        "parameters": parameters * d,
    }


def attention() -> dict[str, Any]:
    """All costs of attention: the formula as printed, and in blocks of T (FlashAttention)."""
    return {
        "FLOPs": attention_flops(),
        "backward FLOPs": attention_backward_flops(),
        "backward FLOPs, tiled": tiled_backward_flops(),
        "FLOPs, causal and tiled": tiled_causal_flops(),
        "other operations": attention_other(),
        "bytes at least": attention_bytes(),
        "bytes as printed": reference_attention_bytes(),
        "peak extra bytes": reference_attention_peak(),
        "peak extra bytes, tiled": tiled_attention_peak(),
        "parameters": sp.S.Zero,
    }


ATTENTION = (
    "FLOPs",
    "backward FLOPs",
    "backward FLOPs, tiled",
    "FLOPs, causal and tiled",
    "other operations",
    "bytes at least",
    "bytes as printed",
    "peak extra bytes",
    "peak extra bytes, tiled",
    "parameters",
)


# Passes over each element, in the stable form: what the formulas of this package do.
OPERATIONS: dict[str, Any] = {
    "attention": attention,
    "softmax": lambda: rowwise(5, kept=2),
    "logsumexp": lambda: rowwise(4, arrays=1, kept=2),
    "cross_entropy": lambda: rowwise(5, arrays=1, kept=3),
    "perplexity": lambda: rowwise(5, arrays=1, kept=3),
    "layer_norm": lambda: rowwise(7, parameters=2, kept=2),
    "rms_norm": lambda: rowwise(4, parameters=1, kept=1),
    "clip_grad_norm": lambda: rowwise(7, kept=0),
}


ROWWISE = ("FLOPs", "other operations", "bytes", "peak extra bytes", "parameters")


def lazily(operation: str, names: tuple[str, ...] = ROWWISE) -> dict[str, Callable[[], Any]]:
    """Return the costs of an operation, each to be worked out when it is asked for: records are made without SymPy."""
    return {name: partial(lambda name: of(operation)[name], name) for name in names}


def of(operation: str) -> dict[str, Any]:
    """The costs of an operation of the contract by name."""
    if operation not in OPERATIONS:
        raise ValueError(f"operation: expected one of {', '.join(OPERATIONS)}, got {operation!r}")
    return dict(OPERATIONS[operation]())
