"""Costs are what the executable formulas do: they are run in an arithmetic that counts, on one call each."""

import math
from itertools import product

import numpy as np
import pytest
import sympy as sp

from veriformer.spec import costs
from veriformer.spec.arithmetic.counting import Counting
from veriformer.spec.blocks import costs_model
from veriformer.spec.costs import POSITIONS, rotation_operations_by_matrix
from veriformer.spec.heads import weights
from veriformer.spec.optimization.adam import Moments
from veriformer.spec.optimization.sgd_momentum import MomentumState
from veriformer.spec.registry import equations

EQUATIONS = {e.slug: e for e in equations()}
RNG = np.random.default_rng(0)
W = 8
# Few rows of many entries: what is done once for a row is less than one operation for each entry.
N, D = 2, 1010
TABLES = {"weight", "bias", "w", "b", "w1", "b1", "w2", "b2", "w_q", "w_k", "w_v", "w_o", "w_gate", "w_up", "w_down"}
TABLES |= {"router", "table", "params", "cross"}


def drawn(*shape):
    return RNG.uniform(0.1, 1, size=shape)


def rows(*names, **more):
    return {"N": N, "d": D}, {**{name: drawn(N, D) for name in names}, **more}


def classes(**more):
    return rows("logits", target=np.array([1, 2]), **more)


def states(kind, arrays):
    one = kind(*(drawn(D) for _ in range(arrays)), *([0] if kind is Moments else []))
    return {"P": D}, {"states": [one], "grads": [drawn(D)], "lr": 0.1}


def network(*names, o=5):
    sizes = {"N": 3, "d": 7, "f": 11, "o": o}
    shapes = {"w1": (7, 11), "b1": (11,), "w2": (11, o), "b2": (o,)}
    gates = {"w_gate": (7, 11), "w_up": (7, 11), "w_down": (11, o)}
    return sizes, {"x": drawn(3, 7), **{name: drawn(*(shapes | gates)[name]) for name in names}}


HEADS = {"B": 2, "H": 6, "G": 3, "n_q": 5, "n_k": 7, "d_k": 11, "d_v": 13, "d": 17}


def attended(groups, *names):
    sizes = {**HEADS, "G": groups}
    shapes = {"q": "B H n_q d_k", "k": "B G n_k d_k", "v": "B G n_k d_v", "weights": "B H n_q n_k", "s": "B H n_q n_k"}
    return sizes, {name: drawn(*(sizes[x] for x in shapes[name].split())) for name in names}


def projected(x, d=17):
    h, g, d_k, d_v = (HEADS[name] for name in ("H", "G", "d_k", "d_v"))
    shapes = {"w_q": (d, h * d_k), "w_k": (d, g * d_k), "w_v": (d, g * d_v), "w_o": (h * d_v, d)}
    named = {name: drawn(*shape) for name, shape in shapes.items()}
    return named if x else list(named.values())


def heads():
    tokens = {"x": drawn(2, 5, 17), "context": drawn(2, 7, 17)}
    return HEADS, tokens | projected("x") | {"num_heads": 6, "num_kv_heads": 3}


BLOCK = {**HEADS, "n_k": 5, "f": 19}


def block():
    network_shapes = {"w1": (17, 19), "b1": (19,), "w2": (19, 17), "b2": (17,)}
    norms = {f"norm{i}_{what}": drawn(17) for i in (1, 2) for what in ("weight", "bias")}
    params = projected("x") | norms | {name: drawn(*shape) for name, shape in network_shapes.items()}
    return BLOCK, {"x": drawn(2, 5, 17), "params": params, "num_heads": 6, "num_kv_heads": 3}


def decoder():
    sizes, arguments = block()
    cross = projected("x") | {"norm1_weight": drawn(17), "norm1_bias": drawn(17)}
    return {**sizes, "n_k": 7}, arguments | {"context": drawn(2, 7, 17), "cross": cross}


def experts():
    sizes = {"N": 3, "d": 7, "E": 4, "k": 4, "f": 11, "o": 5}
    shapes = {"x": (3, 7), "router": (7, 4), "w1": (4, 7, 11), "b1": (4, 11), "w2": (4, 11, 5), "b2": (4, 5)}
    arguments = {name: drawn(*shape) for name, shape in shapes.items()}
    return sizes, arguments | {"chosen": np.ones((3, 4), bool)}


CALLS = {
    "softmax": rows("z"),
    "attention-weights": rows("z"),
    "logsumexp": rows("z"),
    "cross-entropy": classes(),
    "perplexity": classes(),
    "temperature": rows("logits", temperature=2.0),
    "layer-norm": rows("x", weight=drawn(D), bias=drawn(D)),
    "rms-norm": rows("x", weight=drawn(D)),
    "clipping": ({"N": N, "d": D}, {"grads": [drawn(N, D)], "max_norm": 1.0}),
    "residual-flow": rows("x", "fx", scale=2.0),
    "scaled-residual": rows("x", "fx", scale=2.0),
    "silu": rows("x"),
    "gelu": rows("x"),
    "gelu-tanh": rows("x", approximate="tanh"),
    "activation": rows("z", activation="sigmoid"),
    "mse": rows("prediction", "target"),
    "dropout": rows("x", p=0.5, keep=np.ones((N, D), bool)),
    "label-smoothing": ({"N": N, "d": D}, {"target": np.array([1, 2]), "num_classes": D, "alpha": 0.1}),
    "divergence": ({"N": 1, "d": D}, {"y": drawn(D), "p": drawn(D)}),
    "euclidean-distance": ({"N": 1, "d": D}, {"u": drawn(D), "v": drawn(D)}),
    "cosine-similarity": ({"N": 1, "d": D}, {"u": drawn(D), "v": drawn(D)}),
    "learned-positions": (
        {"N": N, "n": N, "d": D},
        {"x": drawn(N, D), "table": drawn(N, D), "positions": np.arange(N)},
    ),
    "rope": ({"N": N, "n": N, "d": D}, {"x": drawn(N, D), "positions": np.arange(N)}),
    "sinusoidal-encoding": ({"n": 4, "d": D}, {"num_positions": 4, "d_model": D}),
    "alibi": ({"H": 2, "n_q": 9, "n_k": 11}, {"num_heads": 2, "n_q": 9, "n_k": 11}),
    "t5-bias": ({"N": 32, "H": 3, "n_q": 9, "n_k": 11}, {"table": drawn(32, 3), "n_q": 9, "n_k": 11}),
    "token-embedding": ({"N": 2, "d": 7, "V": 2}, {"ids": np.array([0, 1]), "weight": drawn(2, 7)}),
    "weight-tying": ({"N": 3, "d": 7, "V": 11}, {"h": drawn(3, 7), "weight": drawn(11, 7)}),
    "gradient-descent": ({"P": D}, {"params": [drawn(D)], "grads": [drawn(D)], "lr": 0.1}),
    "momentum-step": states(MomentumState, 2),
    "adam-step": states(Moments, 3),
    "adam-l2": (states(Moments, 3)[0], states(Moments, 3)[1] | {"weight_decay": 0.1}),
    "adamw": states(Moments, 3),
    "gradient-accumulation": ({"P": D}, {"sums": [[drawn(D)], [drawn(D)]], "counts": [1, 2]}),
    "mlp-first-layer": ({"N": 3, "d": 7, "f": 11}, {"x": drawn(3, 7), "w": drawn(7, 11), "b": drawn(11)}),
    "mlp": network("w1", "b1", "w2", "b2"),
    "feed-forward": network("w1", "b1", "w2", "b2"),
    "swiglu": network("w_gate", "w_up", "w_down"),
    "mixture-of-experts": experts(),
    "attention": attended(3, "q", "k", "v"),
    "similarity": attended(6, "q", "k"),
    "weighted-values": attended(6, "weights", "v"),
    "multi-head": heads(),
    "block-output": block(),
    "decoder-block": decoder(),
}


def taken(xp, x):
    if isinstance(x, np.ndarray) and x.dtype == np.float64:
        return xp.asarray(x)
    if isinstance(x, dict):
        return {name: taken(xp, e) for name, e in x.items()}
    if isinstance(x, (list, tuple)):
        parts = [taken(xp, e) for e in x]
        return type(x)(*parts) if hasattr(x, "_fields") else parts
    return x


def numbers(x):
    """Return the number of floats in arguments or results."""
    if isinstance(x, dict):
        return sum(map(numbers, x.values()))
    if isinstance(x, (list, tuple)):
        return sum(map(numbers, x))
    value = getattr(x, "value", x)
    return value.size if isinstance(value, np.ndarray) and value.dtype == np.float64 else 0


# What is done once, however many rows there are, as calls without them; and what an operation of its own counts.
ONCE = {
    "rope": {"x": drawn(0, N, D), "positions": np.arange(N)},
    "sinusoidal-encoding": {"num_positions": 0, "d_model": D},
    "cosine-similarity": {"u": drawn(D), "v": drawn(0, D)},
    "gradient-accumulation": {"sums": [[drawn(D)]], "counts": [1]},
}
INSIDE = {"block-output": ("activation", {"z": drawn(10, 19), "activation": "gelu"})}
# Masks and choices are operations, and a mask an array, in the costs; they are given to the formula, which does not
# compute them.
GIVEN = {"dropout": N * D, "label-smoothing": 2 * N * D, "mixture-of-experts": 3 * 4}


def counted(slug, arguments):
    xp = Counting()
    result = EQUATIONS[slug].formula(xp, **taken(xp, arguments))
    return {
        "FLOPs": xp.flops,
        "other operations": xp.others,
        "bytes": W * (numbers(arguments) + numbers(result)),
        "largest": max(numbers(next(iter(arguments.values()))), numbers(result)),
        "per row": sum(size for size in xp.reduced if size == N),
        "parameters": sum(numbers(x) for name, x in arguments.items() if name in TABLES),
    }


def sizes_of(slug):
    return {**CALLS[slug][0], "w": W}


def stated(slug, name):
    return costs.evaluate(EQUATIONS[slug].costs[name](), **sizes_of(slug))


def pairs(*names):
    return [(slug, name) for slug in CALLS for name in EQUATIONS[slug].costs if name in names]


@pytest.mark.parametrize(("slug", "name"), pairs("FLOPs", "parameters"))
def test_products_and_parameters_are_those_of_the_formula(slug, name):
    assert counted(slug, CALLS[slug][1])[name] == stated(slug, name)


@pytest.mark.parametrize(("slug", "name"), pairs("other operations"))
def test_other_operations_are_those_of_the_formula_but_for_less_than_one_for_each_entry(slug, name):
    arguments = CALLS[slug][1]
    found = counted(slug, arguments)[name]
    if slug in ONCE:
        found -= counted(slug, ONCE[slug])[name]
    if slug in INSIDE:
        found -= counted(*INSIDE[slug])[name]
    entries = counted(slug, arguments)["largest"]
    assert 0 <= found + GIVEN.get(slug, 0) - stated(slug, name) < entries


@pytest.mark.parametrize(
    ("slug", "name"), pairs("bytes", "bytes at least", "bytes if all experts are asked", "bytes of state")
)
def test_bytes_are_those_of_arguments_and_results_but_for_less_than_two_for_each_row(slug, name):
    if name == "bytes of state":
        arguments = CALLS[slug][1]
        kept = {"states": numbers(arguments.get("states", [])) - D, "sums": D}
        assert stated(slug, name) == W * next((n for argument, n in kept.items() if argument in arguments), 0)
    else:
        mask = W * N * D if slug == "dropout" else 0
        assert 0 <= counted(slug, CALLS[slug][1])["bytes"] + mask - stated(slug, name) < 2 * W * N + 1


@pytest.mark.parametrize(("slug", "name"), pairs("backward FLOPs"))
def test_the_backward_pass_has_two_products_for_each(slug, name):
    xp, (_, arguments), equation = Counting(), CALLS[slug], EQUATIONS[slug]
    given = taken(xp, arguments)
    cotangent = equation.formula(xp, **given)
    forward, xp.flops = xp.flops, 0
    equation.vjp(xp, **given, g=cotangent)
    # It may compute some of the forward pass again.
    assert 0 <= xp.flops - stated(slug, name) <= forward


# The loss of every row is kept beside what the formula reduces.
@pytest.mark.parametrize(
    "slug", ["softmax", "logsumexp", "cross-entropy", "layer-norm", "rms-norm", "clipping", "temperature"]
)
def test_what_is_kept_of_each_row_is_what_the_formula_reduces_it_to(slug):
    losses = N if slug == "cross-entropy" else 0
    assert stated(slug, "peak extra bytes") == W * (counted(slug, CALLS[slug][1])["per row"] + losses)


LETTERS = [
    "B", "H", "G", "n_q", "n_k", "d_k", "d_v", "d", "N", "V", "T", "f", "o", "E", "k", "n", "c", "L", "M", "b",
    "P", "m", "h", "t",
]  # fmt: skip
SIZES = {name: 2 * k + 3 for k, name in enumerate(LETTERS)}
SIZES |= {"w": 4, "ids": 8}

# Arrays, each with its element first: w bytes, or 8 of an index.
ARRAYS = {
    costs.reference_attention_peak: ["w B H n_q n_k"] * 2,
    costs.tiled_attention_peak: [*["w B H n_q"] * 2, *["w B H T T"] * 2],
    costs.kv_cache_bytes: ["w B G n_k d_k", "w B G n_k d_v"],
    costs.attention_bytes: ["w B H n_q d_k", "w B G n_k d_k", "w B G n_k d_v", "w B H n_q d_v"],
    # As printed, scores and weights are written and read besides.
    costs.reference_attention_bytes: [
        *["w B H n_q d_k", "w B G n_k d_k", "w B G n_k d_v", "w B H n_q d_v"],
        *["w B H n_q n_k"] * 4,
    ],
    weights.peak_extra_bytes: [
        *("w B n_q H d_k", "w B n_k G d_k", "w B n_k G d_v", "w B n_q H d_v"),
        *["w B H n_q n_k"] * 2,
    ],
    weights.score_entries: ["B H n_q n_k"],
    costs.NETWORK["peak extra bytes"]: ["w N f"] * 2,
    costs.GATED["peak extra bytes"]: ["w N f"] * 3,
    costs.EXPERTS["peak extra bytes"]: ["w N E", *["w N k f"] * 2],
    POSITIONS["rope"]["peak extra bytes"]: ["w n d"],
    POSITIONS["alibi"]["peak extra bytes"]: [],
    POSITIONS["learned"]["peak extra bytes"]: [],
    POSITIONS["rope"]["bytes"]: ["w N d"] * 2,
    costs.GREEDY["bytes"]: ["w N d", "ids N"],
    costs.CALIBRATION["bytes"]: ["w N d", "ids N"],
    costs.CALIBRATION["peak extra bytes"]: ["w M"] * 3,
    costs.TOP_K["bytes"]: ["w N d"] * 2,
    costs.TOP_P["bytes"]: ["w N d"] * 2,
    costs.TOP_K["peak extra bytes"]: ["w N k", "ids N k"],
    costs.TOP_P["peak extra bytes"]: ["w N d", "w N d", "ids N d"],
    costs.BEAM["peak extra bytes"]: ["ids b T", "w b V"],
    costs.BEAM["rows that the model reads, at most"]: ["b T"],
    costs.SEARCH["bytes"]: ["w N d", "w d"],
    costs.comparison(1)["bytes"]: ["w N d", "w d", "w N"],
    costs.BYTE_PAIRS["merges kept"]: ["M"],
    costs.UNIGRAM["numbers kept"]: ["n", "n", "", ""],
    costs_model.cache_bytes: ["w L n d"] * 2,
    # Inputs of norms, what they gave, q, k, v and the heads' output are of width d; the network is 4 d wide.
    costs_model.kept_bytes: [*["w n d"] * (2 + 2 + 3 + 1 + 4 + 4), *["w H n n"] * 2],
    costs_model.training_peak: [*["w L n d"] * 16, *["w L H n n"] * 2, *["w n V"] * 2],
    costs_model.checkpointed_peak: ["w L n d", *["w n d"] * 16, *["w H n n"] * 2, *["w n V"] * 2],
    # What a step reads: the head and the last norm, weights and norms of the blocks, biases of the network, the cache.
    costs_model.step_bytes: ["w V d", *["w d"] * 2, *["w L d d"] * 12, *["w L d"] * 9, *["w L n d"] * 2],
}


@pytest.mark.parametrize("cost", ARRAYS, ids=range(len(ARRAYS)))  # a function by its name would show its address
def test_bytes_are_those_of_arrays(cost):
    sizes = {letter.name: SIZES[letter.name] for letter in cost().free_symbols}
    arrays = sum(math.prod(SIZES[name] for name in array.split()) for array in ARRAYS[cost])
    assert costs.evaluate(cost(), **sizes) == arrays


def test_comparisons_by_counting():
    def level(entries):
        """Comparisons down a heap, or a search among sorted entries, of so many: one at each level."""
        return 0 if entries == 0 else 1 + level(entries // 2)

    rows, d, k, bins = 3, 7, 3, 4
    sizes = {"N": rows, "d": d}
    at_most = "comparisons at most, with a heap of k"
    heap = costs.evaluate(costs.TOP_K[at_most](), **sizes, k=k)
    assert sp.simplify(heap - sum(level(k) for _ in range(rows * d))) == 0
    at_most = "comparisons at most, sorted"
    ordered = costs.evaluate(costs.TOP_P[at_most](), **sizes)
    assert sp.simplify(ordered - sum(level(d) for _ in range(rows * d))) == 0
    assert costs.evaluate(costs.SEARCH["comparisons"](), N=rows) == len(range(1, rows))
    looked = sum(len(range(1, d)) + len(range(bins)) for _ in range(rows))
    assert costs.evaluate(costs.CALIBRATION["comparisons"](), **sizes, M=bins) == looked
    assert costs.evaluate(costs.BYTE_PAIRS["pairs counted in training, at most"](), n=d, M=k) == k * (d - 1)
    assert costs.evaluate(costs.BEAM["hypotheses of an exhaustive search"](), V=3, T=4) == len(
        [*product("abc", repeat=4)]
    )
    # Softmax, the running sum, and the comparison with p; a rotation by pairs or by a matrix.
    assert (
        costs.evaluate(costs.TOP_P["other operations"](), **sizes)
        == stated("softmax", "other operations") * rows * d / (N * D) + 2 * rows * d
    )
    products = sum(d + (d - 1) for _ in range(rows * d))
    assert costs.evaluate(rotation_operations_by_matrix(), **sizes) == products
    others = costs.evaluate(costs.CALIBRATION["other operations"](), N=rows, M=bins)
    assert others == sum(3 for _ in range(rows)) + sum(5 for _ in range(bins))
    # Of 6 × 6 pairs in blocks of 3 × 3 a causal mask leaves three blocks.
    tiled = costs.evaluate(costs.tiled_causal_flops(), B=2, H=3, n_q=6, T=3, d_k=5, d_v=7)
    assert tiled == 2 * 3 * sum(2 * (5 + 7) for _ in range(3 * 9))
