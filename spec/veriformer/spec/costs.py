"""Costs of the operations, as SymPy expressions in the letters of the contract.

FLOPs count matrix products only, a multiplication and an addition as two, which is what torch's FlopCounterMode counts.
Other operations count every elementwise addition, multiplication, division, comparison, root and transcendental as one.
Bytes are those that must move at least (each argument read once, each result written once); peak extra bytes are
what is alive at the same time beside arguments and results. An element has w bytes, statistics included.

There are N rows of width d, n positions, n_q queries, n_k keys and H heads. A network has hidden width f and output
width o; of E experts k are asked. An optimizer has P parameters. A beam keeps b hypotheses for T rounds over a
vocabulary of V; calibration has M bins. A text has n bytes or code points; M merges are learned; no piece is longer
than m.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp

Costs = dict[str, Callable[[], Any]]
"""Costs by name, each worked out when it is asked for: records are made without SymPy."""


def symbol(name: str) -> Any:
    """Return the letter of a size: B, H, G, n_q, n_k, d_k, d_v, d, V, N, T (block size) or w (bytes per element)."""
    return sp.Symbol(name, integer=True, positive=True)


def elasticity(cost: Any, size: str, at: dict[str, Any]) -> Any:
    """Return ∂ log C / ∂ log n at a point: the slope of the cost in a log-log plot there."""
    n = symbol(size)
    return evaluate(sp.simplify(n * sp.diff(cost, n) / cost), **at)


def evaluate(cost: Any, **sizes: Any) -> Any:
    """Return the cost with numbers for its letters; every letter needs one."""
    value = cost.subs({symbol(name): size for name, size in sizes.items()})
    if value.free_symbols:
        raise ValueError(f"sizes: expected also {', '.join(sorted(s.name for s in value.free_symbols))}")
    return value


def order(cost: Any) -> Any:
    """Return the monomials of a cost in sizes, without coefficients, as in O(…); bytes per element do not count."""
    terms = sp.Poly(sp.expand(cost.subs(symbol("w"), 1))).monoms()
    letters = sp.Poly(sp.expand(cost.subs(symbol("w"), 1))).gens
    return sum(sp.prod(x**k for x, k in zip(letters, powers, strict=True)) for powers in terms)


def cost(expression: Callable[..., Any]) -> Callable[[], Any]:
    """Return the cost as a function without arguments; a proof that computes with one needs a function with a name.

    expression: of the letters that its parameters name.
    """
    letters = inspect.signature(expression).parameters
    return lambda: sp.sympify(expression(*map(symbol, letters)))


def _nothing() -> Any:
    return sp.S.Zero


causal_pairs = cost(lambda n_q, n_k: n_q * n_k - n_q * (n_q - 1) / 2)
"""Visible pairs of one head under a causal mask, n_q ≤ n_k."""

causal_block_pairs = cost(lambda n_q, T: n_q * (n_q + T) / 2)
"""Pairs of one head in the n × n causal case that lie in blocks of T × T with a visible pair, T dividing n."""

score_flops = cost(lambda B, H, n_q, n_k, d_k: 2 * B * H * n_q * n_k * d_k)
value_flops = cost(lambda B, H, n_q, n_k, d_v: 2 * B * H * n_q * n_k * d_v)
attention_flops = cost(lambda B, H, n_q, n_k, d_k, d_v: 2 * B * H * n_q * n_k * (d_k + d_v))
"""Scores Q Kᵀ, output P V, and both."""

attention_backward_flops = cost(lambda B, H, n_q, n_k, d_k, d_v: 4 * B * H * n_q * n_k * (d_k + d_v))
"""dV, dP, dQ and dK, twice the forward pass."""

tiled_backward_flops = cost(lambda B, H, n_q, n_k, d_k, d_v: 2 * B * H * n_q * n_k * (3 * d_k + 2 * d_v))
"""The scores once more, then dV, dP, dQ and dK."""

tiled_causal_flops = cost(lambda B, H, d_k, d_v: 2 * B * H * causal_block_pairs() * (d_k + d_v))
"""The tiled forward pass over n_q = n_k, skipping blocks of T × T that the causal mask hides as a whole."""

attention_other = cost(lambda B, H, n_q, n_k: 6 * B * H * n_q * n_k)
"""Scale, maximum, subtraction, exponential, sum and division of every score."""

attention_bytes = cost(lambda B, H, G, n_q, n_k, d_k, d_v, w: w * B * (H * n_q * (d_k + d_v) + G * n_k * (d_k + d_v)))
"""Q, K and V read, O written."""

reference_attention_bytes = cost(lambda B, H, n_q, n_k, w: attention_bytes() + 4 * B * H * n_q * n_k * w)
"""The formula as printed writes and reads the scores and the weights once each besides."""

reference_attention_peak = cost(lambda B, H, n_q, n_k, w: 2 * B * H * n_q * n_k * w)
"""Scores and weights at the same time."""

tiled_attention_peak = cost(lambda B, H, n_q, T, w: w * B * H * (2 * n_q + 2 * T * T))
"""The statistics (m, l) of every row and one block of scores and weights: linear in n_q, constant in n_k."""


def kv_cache_bytes() -> Any:
    """Return the bytes of keys and values of G groups: G = H is multi-head, G = 1 multi-query."""
    b, g, n_k, d_k, d_v, w = map(symbol, ("B", "G", "n_k", "d_k", "d_v", "w"))
    return w * b * g * n_k * (d_k + d_v)


def rowwise(passes: int, *, arrays: int = 2, parameters: int = 0, kept: int = 0) -> Costs:
    """Return the costs of an operation over N rows of d elements that does `passes` elementwise operations on each.

    arrays are read or written in full, parameters are vectors of d, kept are extra elements per row.
    """
    return {
        "FLOPs": _nothing,
        "other operations": cost(lambda N, d: passes * N * d),
        "bytes": cost(lambda N, d, w: w * (arrays * N * d + parameters * d)),
        "peak extra bytes": cost(lambda N, w: w * kept * N),
        "parameters": cost(lambda d: parameters * d),
    }


def elementwise(passes: int, arrays: int = 2) -> Costs:
    """Return the costs of an operation that does so many elementwise operations on N rows of d and keeps nothing."""
    return {name: cost for name, cost in rowwise(passes, arrays=arrays).items() if name != "peak extra bytes"}


# Passes over each element, in the stable form: what the formulas of this package do.
OPERATIONS: dict[str, Costs] = {
    "attention": {
        "FLOPs": attention_flops,
        "backward FLOPs": attention_backward_flops,
        "backward FLOPs, tiled": tiled_backward_flops,
        "FLOPs, causal and tiled": tiled_causal_flops,
        "other operations": attention_other,
        "bytes at least": attention_bytes,
        "bytes as printed": reference_attention_bytes,
        "peak extra bytes": reference_attention_peak,
        "peak extra bytes, tiled": tiled_attention_peak,
        "parameters": _nothing,
    },
    "softmax": rowwise(5, kept=2),
    "temperature_scale": rowwise(6, kept=2),
    "logsumexp": rowwise(4, arrays=1, kept=2),
    "cross_entropy": rowwise(5, arrays=1, kept=3),
    "perplexity": rowwise(5, arrays=1, kept=3),
    "layer_norm": rowwise(7, parameters=2, kept=2),
    "rms_norm": rowwise(4, parameters=1, kept=1),
    "clip_grad_norm": rowwise(7, kept=0),
}


def lazily(operation: str) -> Costs:
    """Return the costs of an operation of the contract by name."""
    if operation not in OPERATIONS:
        raise ValueError(f"operation: expected one of {', '.join(OPERATIONS)}, got {operation!r}")
    return dict(OPERATIONS[operation])


def of(operation: str) -> dict[str, Any]:
    """Return the costs of an operation of the contract by name, as expressions."""
    return {name: cost() for name, cost in lazily(operation).items()}


layer_parameters = cost(lambda d, f: d * f + f)
layer_flops = cost(lambda N, d, f: 2 * N * d * f)
network_parameters = cost(lambda d, f, o: d * f + f + f * o + o)
network_flops = cost(lambda N, d, f, o: 2 * N * f * (d + o))
"""Weights and biases of two layers; the two products."""


def gated_parameters() -> Any:
    """Return the parameters of three matrices without biases."""
    d, f, o = map(symbol, "dfo")
    return 2 * d * f + f * o


def gated_flops() -> Any:
    """Return the FLOPs of the three products."""
    return 2 * symbol("N") * gated_parameters()


experts_parameters = cost(lambda d, E: d * E + E * network_parameters())
experts_flops = cost(lambda N, d, E, k: 2 * N * d * E + k * network_flops())
"""The router and E networks; the router, and k networks for each row."""


def _matrices(parameters: Callable[[], Any], flops: Callable[[], Any], hidden: int) -> Costs:
    """Return the costs of a network. hidden: how many arrays of the hidden width are alive at once."""
    return {
        "FLOPs": flops,
        "backward FLOPs": lambda: 2 * flops(),
        "bytes at least": cost(lambda N, d, o, w: w * (N * (d + o) + parameters())),
        "peak extra bytes": cost(lambda N, f, w: hidden * w * N * f),
        "parameters": parameters,
    }


LAYER: Costs = {"FLOPs": layer_flops, "backward FLOPs": lambda: 2 * layer_flops(), "parameters": layer_parameters}
NETWORK = _matrices(network_parameters, network_flops, 2)
GATED = _matrices(gated_parameters, gated_flops, 3)
EXPERTS: Costs = {
    "FLOPs": experts_flops,
    "backward FLOPs": lambda: 2 * experts_flops(),
    # The router's softmax and choice, and for each expert asked its activation, both biases and its gate.
    "other operations": cost(lambda N, o, E, k, f: N * (6 * E + k * (6 * f + 3 * o))),
    "bytes if all experts are asked": cost(lambda N, d, o, w: w * (N * (d + o) + experts_parameters())),
    # The gates of all experts, and the hidden layer of those asked before and after its activation.
    "peak extra bytes": cost(lambda N, E, k, w, f: w * N * E + 2 * k * w * N * f),
    "parameters": experts_parameters,
}


def comparison(operations: int) -> Costs:
    """Return the costs of this many operations on each entry of N keys, which are read once, as the query is."""
    return {
        "FLOPs": _nothing,
        "other operations": cost(lambda N, d: operations * N * d),
        "bytes": cost(lambda N, d, w: w * (N * d + d + N)),
        "parameters": _nothing,
    }


SEARCH: Costs = {
    "FLOPs": cost(lambda N, d: 2 * N * d),
    "comparisons": cost(lambda N: N - 1),
    "bytes": cost(lambda N, d, w: w * (N * d + d)),
    "parameters": _nothing,
}

# Elementwise operations per parameter, arrays read or written (θ, g and the state), and arrays kept as state.
_STEPS = {
    "exponential_average": (3, 3, 1),
    "square_average": (4, 3, 1),
    "accumulation": (1, 3, 1),
    "gradient_descent": (2, 3, 0),
    "sgd_momentum": (5, 5, 1),
    "adam": (14, 7, 2),
    "adam_l2": (16, 7, 2),
    "adamw": (15, 7, 2),
}


def optimizer_costs(optimizer: str) -> Costs:
    """Return the costs of a step over P parameters, or of one micro-batch that is added to a sum of P gradients.

    What depends on the step alone, not on the parameter, is free. The state is what is kept between steps.
    """
    passes, arrays, kept = _STEPS[optimizer]
    return {
        "FLOPs": _nothing,
        "other operations": cost(lambda P: passes * P),
        "bytes": cost(lambda P, w: arrays * P * w),
        "bytes of state": cost(lambda P, w: kept * P * w),
    }


def schedule_costs(operations: int) -> Costs:
    """Return the costs of a schedule: a number per step, however large the model is."""
    return {"other operations": cost(lambda: operations), "bytes of state": _nothing, "parameters": _nothing}


EMBEDDING: Costs = {  # a lookup has no product: with one-hot rows it would have 2 N V d
    "FLOPs": _nothing,
    "bytes": cost(lambda N, d, w: 2 * w * N * d),
    "parameters": cost(lambda V, d: V * d),
}
HEAD: Costs = {
    "FLOPs": cost(lambda N, d, V: 2 * N * d * V),
    "bytes": cost(lambda N, d, V, w: w * (N * d + V * d + N * V)),
    "parameters": cost(lambda V, d: V * d),
}
BYTE_PAIRS: Costs = {
    # A scan of i pieces looks at i − 1 pairs, and every merge leaves fewer: 1 + 2 + … + (n − 1).
    "pairs looked at in encoding, at most": cost(lambda n: n * (n - 1) / 2),
    "pairs counted in training, at most": cost(lambda M, n: M * (n - 1)),
    "merges kept": cost(lambda M: M),
}
UNIGRAM: Costs = {
    # Up to m ≤ n pieces end at each place, fewer at the first ones.
    "pieces considered": cost(lambda n, m: n * m - m * (m - 1) / 2),
    "segmentations of an exhaustive search": cost(lambda n: 2 ** (n - 1)),
    "numbers kept": cost(lambda n: 2 * (n + 1)),
}

rotation_operations = cost(lambda N, d: 3 * N * d)
"""Four products and two sums for each of d / 2 pairs of N rows."""

rotation_operations_by_matrix = cost(lambda N, d: N * d * (2 * d - 1))
"""N products of a vector with a d × d matrix, all entries used."""


def _positions(
    other: Callable[..., Any], moved: Callable[..., Any], kept: Callable[..., Any], parameters: Callable[..., Any]
) -> Costs:
    """Return the costs of one way to tell positions: elementwise operations, and elements moved, alive and trained."""
    return {
        "FLOPs": _nothing,
        "other operations": cost(other),
        "bytes": lambda: symbol("w") * cost(moved)(),
        "peak extra bytes": lambda: symbol("w") * cost(kept)(),
        "parameters": cost(parameters),
    }


# What depends on the width alone, such as the frequencies, is free. T5's N are its buckets.
POSITIONS = {
    # One product per angle, a sine and a cosine of each; the angles are kept until then.
    "sinusoidal": _positions(lambda n, d: 3 * n * d / 2, lambda n, d: n * d, lambda n, d: n * d / 2, lambda: 0),
    # The table of cosines and sines is shared by all rows at a position.
    "rope": _positions(lambda N, d: 3 * N * d, lambda N, d: 2 * N * d, lambda n, d: n * d, lambda: 0),
    "alibi": _positions(lambda H, n_q, n_k: H * n_q * n_k, lambda H, n_q, n_k: H * n_q * n_k, lambda: 0, lambda: 0),
    "t5": _positions(lambda: 0, lambda N, H, n_q, n_k: N * H + H * n_q * n_k, lambda: 0, lambda N, H: N * H),
    "learned": _positions(lambda N, d: N * d, lambda N, d, n: 2 * N * d + n * d, lambda: 0, lambda n, d: n * d),
}

# Choosing tokens: N rows of d logits each, in comparisons where nothing is added.
GREEDY: Costs = {
    "FLOPs": _nothing,
    "comparisons": cost(lambda N, d: N * (d - 1)),
    "bytes": cost(lambda N, d, w: w * N * d + 8 * N),
    "parameters": _nothing,
}
TOP_K: Costs = {
    "FLOPs": _nothing,
    "comparisons at most, with a heap of k": cost(lambda N, d, k: N * d * sp.log(k + 1, 2)),
    "bytes": cost(lambda N, d, w: 2 * w * N * d),
    "peak extra bytes": cost(lambda N, k, w: N * k * (w + 8)),
    "parameters": _nothing,
}
TOP_P: Costs = {
    "FLOPs": _nothing,
    "comparisons at most, sorted": cost(lambda N, d: N * d * sp.log(d + 1, 2)),
    "other operations": cost(lambda N, d: 7 * N * d),  # softmax, the running sum, the comparison with p
    "bytes": cost(lambda N, d, w: 2 * w * N * d),
    "peak extra bytes": cost(lambda N, d, w: N * d * (2 * w + 8)),
    "parameters": _nothing,
}
CALIBRATION: Costs = {
    "FLOPs": _nothing,
    "comparisons": cost(lambda N, d, M: N * (d - 1 + M)),
    "other operations": cost(lambda N, M: 3 * N + 5 * M),
    "bytes": cost(lambda N, d, w: w * N * d + 8 * N),
    "peak extra bytes": cost(lambda M, w: 3 * w * M),
    "parameters": _nothing,
}
BEAM: Costs = {
    "rows that the model reads, at most": cost(lambda b, T: b * T),
    "continuations that are compared, at most": cost(lambda b, T, V: b * T * V),
    "hypotheses of an exhaustive search": cost(lambda V, T: V**T),
    "peak extra bytes": cost(lambda b, T, V, w: 8 * b * T + w * b * V),
    "parameters": _nothing,
}
