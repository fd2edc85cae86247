"""Values of the symbols of each equation in a draw of its arguments: arguments, what formulas make of them, letters of
its proofs. By the slug of the equation, a function of the draw; symbols that are not in it are arguments.
"""

import inspect
from functools import cache

import numpy as np
import sympy as sp

from veriformer.spec import costs
from veriformer.spec.arithmetic import Float
from veriformer.spec.arithmetic.formats import FORMATS
from veriformer.spec.attention.causal_mask import causal_mask
from veriformer.spec.blocks.costs_model import forward_flops
from veriformer.spec.efficient.int8 import int8_round_trip
from veriformer.spec.efficient.linear_attention import elu_plus_one
from veriformer.spec.generation.beam_search import beam_search
from veriformer.spec.language.bpe import bpe_encode, bpe_train
from veriformer.spec.language.unigram_segment import unigram_segment
from veriformer.spec.layers.dropout import dropout
from veriformer.spec.layers.gelu import gelu
from veriformer.spec.layers.layer_norm import layer_norm
from veriformer.spec.optimization.averages import corrected_average
from veriformer.spec.positions.alibi import alibi_slopes
from veriformer.spec.positions.angles import frequencies
from veriformer.spec.proofs.provenance import plain
from veriformer.spec.proofs.spaces import Mapped
from veriformer.spec.registry import equations
from veriformer.spec.scores.softmax import softmax

EQUATIONS = {e.slug: e for e in equations()}
XP = Float()
# Arguments that are named in words where the statement has a letter.
IN_WORDS = {
    "eta": "lr",
    "epsilon": "eps",
    "eta_max": "max_lr",
    "T_warmup": "warmup_steps",
    "T_total": "total_steps",
    "t": "step",
    "gamma": "weight",
    "beta": "bias",
    "T": "temperature",
    "R": "router",
    "PE": "table",
    "alpha": "scale",
    "M": "num_bins",
    "H": "num_heads",
    "h": "num_heads",
    "G": "num_kv_heads",
    "V": "vocabulary",
    "n": "positions",
    "L": "layers",
    "E": "weight",
    "c": "max_norm",
    "X": "x",
    "C": "context",
    "A": "a",
    "B": "b",
    "d_model": "d",
    "f": "inner",
    "W": "w",
    "lambda": "weight_decay",
    "W^O": "w_o",
    "W^(1)": "w1",
    "b^(1)": "b1",
    "W^(2)": "w2",
    "b^(2)": "b2",
    "W_1": "w1",
    "W_2": "w2",
    "z": "logits",
    "z^(1)": "z",
    "k_i": "k",
    "v_i": "v",
    "alpha_i": "weights",
    "k_new": "k_new",
    "h_t": "h",
    "y": "target",
    "X_tok": "x",
    "b": "table",
    "s_i": "z",
    "S_k": "losses",
    "n_k": "counts",
    "g_i": "values",
    "k": "k",
    "u": "u",
    "v": "v",
    "s": "scale",
}


def run(formula, *arguments, **options):
    value = formula(XP, *(XP.asarray(x) if isinstance(x, np.ndarray) else x for x in arguments), **options)
    return getattr(value, "value", value)


def vector(arrays):
    return np.concatenate([np.ravel(x) for x in arrays])


def jacobian(function, x):
    """By central differences; [outputs, inputs]."""
    steps = 1e-5 * np.eye(x.size)
    return np.stack([(np.ravel(function(x + s)) - np.ravel(function(x - s))) / 2e-5 for s in steps], axis=1)


@cache
def letter(slug, name):
    """A letter of the equation's proofs ("step:letter", or of the first step that has it): what is assumed of it."""
    only, _, name = name.rpartition(":")
    for step in (s for s in EQUATIONS[slug].steps if only in ("", s.slug)):
        for side in (side for pair in step.identity() for side in pair):
            for found in sp.sympify(plain(side)).free_symbols if np.ndim(side) == 0 else ():
                if isinstance(found, sp.Symbol) and found.name == name:
                    return found
    raise LookupError(f"{slug}: no letter {name} in its proofs")


def proofs(names, more=lambda a: {}):
    """Letters that only the proofs have."""
    return lambda a, slug: {name: letter(slug, own or name) for name, own in named(names)} | more(a)


def named(names):
    return ((name, own) for name, _, own in (word.partition("=") for word in names.split()))


def counts(*names):
    """Letters of costs."""
    return lambda a, slug: {name: costs.symbol(name) for name in names}


def values(function):
    return lambda a, slug: function(a)


def norm(x):
    return run(layer_norm, x)


def network(a):
    return {"x": a["x"][..., :1, :], "sigma'": slope(a["x"]), "sigma": mapped(gelu, a["x"])}


def mapped(formula, x, **options):
    return Mapped(x, run(formula, x, **options))


def slope(x):
    return Mapped(x, (run(gelu, x + 1e-6) - run(gelu, x - 1e-6)) / 2e-6)


def optimizer(a):
    states, grads = a["states"], vector(a["grads"])
    found = {"theta_t": vector(s.theta for s in states), "v_t": vector(s.v for s in states)}
    if hasattr(states[0], "m"):
        found |= {"m_t": vector(s.m for s in states), "beta_1": a["betas"][0], "beta_2": a["betas"][1]}
        found |= {"m_hat_t": found["m_t"] / 0.5, "v_hat_t": found["v_t"] / 0.5}
    return found | {"nabla_theta": grads}


def flow(a):
    theta, g = vector(a["params"]), vector(a["grads"])
    parabola = lambda x: np.outer(g, g) @ x  # noqa: E731  the gradient of (g · x)² / 2
    return {"theta": theta, "L": Mapped(theta, theta @ g), "H": jacobian(parabola, theta)}


def residual(a):
    row = a["x"][0]
    return {"h": a["x"], "F": Mapped(a["x"], a["fx"]), "J": jacobian(branch, row)}


def branch(row):
    """A map of rows whose Jacobian has entries of both signs."""
    return run(gelu, 2 * row - row.sum())


def block(a):
    x = a["x"]
    row = x[0, 0]
    wide = {"h_1": norm(x), "h_2": x, "h_3": norm(x), "y": x, "x": x, "x_hat": norm(row), "n": x.shape[-2]}
    jacobians = {"W": jacobian(branch, row), "J": jacobian(norm, row), "M": jacobian(norm, row)}
    jacobians |= {"R": jacobians["W"], "h_l": row, "F_l": norm(row), "C": a.get("context")}
    return wide | jacobians


def heads(a):
    """Return the letters of a head: its own columns of the weights of all heads."""
    h, g = a["num_heads"], a["num_kv_heads"]
    own = {"W_i^Q": head(a["w_q"], h), "W_i^K": head(a["w_k"], g), "W_i^V": head(a["w_v"], g)}
    d_v = a["w_v"].shape[1] // g
    inputs = dict.fromkeys(("Q", "K", "V", "X"), a["x"])
    return own | inputs | {"W^O": a["w_o"], "h": h, "d_v": d_v, "H": h, "G": g, "r": h // g, "C": a.get("context")}


def head(w, count):
    return w[:, : w.shape[1] // count]


def cache_rows(a):
    cache = a["cache"]
    full = {x: np.concatenate([getattr(cache, x), a[f"{x}_new"]], axis=2) for x in "kv"}
    return {
        "K_cache": cache.k,
        "V_cache": cache.v,
        "K_full": full["k"],
        "V_full": full["v"],
        "m": cache.k.shape[2],
        "r": a["k_new"].shape[2],
        "b": causal_mask(1, full["k"].shape[2], window=2)[0].astype(int),
        "w": np.arange(1, full["k"].shape[2] + 1),
    }


def linear(a):
    q, k, v = a["q"], a["k"], a["v"]
    phi = run(elu_plus_one, k[0, 0])
    features = {"phi": mapped(elu_plus_one, q), "f_c": run(elu_plus_one, q), "g_jc": phi, "g": phi}
    return features | {"S": phi.T @ v[0, 0], "z": phi.sum(0), r"\mathbf{1}": np.ones(k.shape[-2]), "n": k.shape[-2]}


def angles(a):
    d = a.get("d_model") or a["x"].shape[-1]
    theta = run(frequencies, d)
    pairs = {"d_model": d, "d_k": d, "d": d, "theta_i": theta, "i": np.arange(d // 2), "PE": None}
    positions = np.arange(a["num_positions"]) if "num_positions" in a else a["positions"]
    row = a["x"][0, 0, :2] if "x" in a else None
    turn = np.array([[np.cos(1), np.sin(1)], [-np.sin(1), np.cos(1)]])
    return pairs | {"p": positions, "pos": positions, "q^(i)": row, "k^(i)": row, "M": turn, "alpha": None, "s": None}


def scores(a):
    z = a.get("logits", a.get("z"))
    return {"p": run(softmax, z), "n": z.shape[-1], "delta": np.eye(z.shape[-1], dtype=int), "alpha_i": run(softmax, z)}


def choices(a):
    p = run(softmax, a["logits"])
    top = (p >= np.sort(p)[..., -2:-1]).astype(int)
    return {"p": a.get("p", p), "p_j": p, "m_i": top, "V": p.shape[-1], "k": a.get("k")}


def tokens(a):
    p = run(softmax, a["logits"])
    ids = a.get("target", a.get("labels"))
    scored = np.maximum(ids, 0)
    chosen = np.take_along_axis(p, scored[..., None], -1)[..., 0]
    counts_of = {"T": scored.size, "M": int((ids >= 0).sum()), "n": ids.shape[-1], "m": ids.size, "U": a.get("units")}
    return counts_of | {"x_t": scored, "V": p.shape[-1], "F_t": np.cumprod(chosen.ravel()), "P": chosen, "x": None}


def int8(a):
    x = a["x"]
    scale = np.abs(x).max(-1, keepdims=True)
    codes = np.floor(127 * x / scale)
    error = run(int8_round_trip, x) - x
    return {"a": scale, "m": codes, "t": np.abs(127 * x / scale - codes - 0.5), "e": error, "d": x.shape[-1]}


def online(a):
    s = a["s"]
    first = s.max(-1)
    weights = np.exp(s - first[..., None])
    return {"m": first, "l": weights.sum(-1), "o": weights @ a["v"]}


def matrices(a):
    found = {"A": a["a"], "X": a.get("x"), "B": a["b"]}
    if "x" in a:
        y = a["a"] @ a["x"] @ a["b"]
        n, p = a["x"].shape
        found |= {"vec": a["x"].T.ravel(), "Y": y, "f": y.sum(), "n": n, "p": p}
    return found


def calibration(a):
    confidence = a["probs"].max(-1)
    right = (a["probs"].argmax(-1) == a["target"]).astype(int)
    return {"p_i": confidence, "c_i": right, "n": right.size, "B_m": np.arange(1, right.size + 1)}


def masks(a):
    return {"M": np.where(a["see"], 0.0, -np.inf), "b": a["see"].astype(int)}


def feed(a):
    """A network back to its own width: the formula takes any."""
    d, wide = a["w1"].shape
    rows = {"x": a["x"], "W_1": a["w1"], "b_1": a["b1"], "n": a["x"].shape[-2]}
    return rows | {"W_2": np.resize(a["w2"], (wide, d)), "b_2": np.resize(a["b2"], d)} | factors(a)


def factors(a):
    if "keep" not in a:
        return {}
    p = a.get("p", a.get("dropout_p"))
    return {"p": p, "m": run(dropout, np.ones(a["keep"].shape), p, keep=a["keep"])}


def dropped(a):
    p = run(softmax, np.tile(a["x"][:1], (a["x"].shape[-1], 1)))
    return {"A": p, "n": p.shape[-1]} | factors(a)


def attended(a):
    s = a["q"] @ np.repeat(a["k"], a["q"].shape[1] // a["k"].shape[1], axis=1).swapaxes(-1, -2)
    return {"S": s, "P": run(softmax, s)}


def weights(a):
    shape = a["n_in"], a["n_out"]
    small = np.prod(shape) < 10_000
    return {"W": np.random.default_rng(0).normal(size=shape) if small else None, "v": 2 / (a["n_in"] + a["n_out"])}


def regression(a):
    y, hat = np.atleast_2d(a["target"]), np.atleast_2d(a["prediction"])
    x = np.concatenate([y, hat], -1)
    w = np.linalg.pinv(x.reshape(-1, x.shape[-1])) @ y.reshape(-1, y.shape[-1])
    return {"Y_true": y, "Y_hat": hat, "X": x, "W": w, "b": w.sum(0), "N": y.shape[-2]}


def whole_weights(a):
    d, h = a["d"], a["heads"]
    return {"h": h, "H": h, "G": h, "d_k": d // h, "d_v": d // h, "d_model": d}


def experts(a):
    k, count = a["top_k"], a["router"].shape[1]
    outputs = Mapped(a["x"], a["w2"][0].T @ np.ones(a["w2"].shape[1]))
    return {
        "R": a["router"],
        "T": np.arange(1, count + 1),
        "E": count,
        "FFN_e": outputs,
        "k": k,
        "o": a["w2"].shape[-1],
        "d": a["router"].shape[0],
    }


def averaged(a):
    m = run(corrected_average, a["values"], a.get("beta", 0.5))
    return {
        "m_t": m,
        "v_t": m,
        "g_i": a["values"],
        "t": len(a["values"]),
        "beta": np.array(a.get("betas", a.get("beta"))),
    }


def accumulated(a):
    return {"S_k": vector(map(vector, a["sums"])), "n_k": np.array(a["counts"]), "g": vector(a["sums"][0])}


def embedded(a):
    if "ids" in a:
        return {"E": a["weight"], "i": a["ids"], "V": a["weight"].shape[0]}
    return {"E": a["weight"], "h_t": a["h"][..., :1, :]}


def smoothed(a):
    return {"y_true": np.eye(a["num_classes"], dtype=int)[a["target"]], "V": a["num_classes"], "n": a["num_classes"]}


def unigram(a):
    first = unigram_segment(a["text"], a["log_probs"])[0]
    return {"P": np.exp(list(a["log_probs"].values())), "s": a["text"], "tau_i": first}


def pairs_of_bytes(a):
    merges = bpe_train(a["texts"], a["num_merges"])
    return {"s": a["texts"][0], "M": merges, "tau_i": bpe_encode(a["texts"][0], merges)[0]}


def beams(a):
    penalty = inspect.signature(beam_search).parameters["length_penalty"].default
    return {"b": a["beam_width"], "n": a["max_length"], "alpha": penalty + np.arange(3) / 2}


def equivariant(a):
    x = a["x"]
    return {"f": Mapped(x, np.tanh(x)), "Pi": np.eye(x.shape[-2], dtype=int), "n": x.shape[-2], "d": x.shape[-1]}


def orthogonal(a):
    u = np.random.default_rng(a["d"]).normal(size=(2, a["d"]))
    return {"u": u[0], "v": u[1]}


def swiglu(a):
    return {"W_1": a["w_gate"], "W_2": a["w_up"], "W_3": np.resize(a["w_down"], a["w_up"].shape[::-1]), "x": a["x"]}


def gated(a):
    """The density and the distribution, by the slope of GELU: Φ(x) = GELU(x) / x."""
    x = np.where(a["x"] == 0, 1.0, a["x"])
    return {"Phi": Mapped(x, run(gelu, x) / x), "varphi": Mapped(x, np.exp(-x * x / 2)), "sigma": Mapped(x, expit(x))}


def expit(x):
    return 1 / (1 + np.exp(-x))


def biased(a):
    count, own = a["table"].shape
    exact = count // (4 if a["bidirectional"] else 2)
    shared = count // (2 if a["bidirectional"] else 1) - exact
    return {
        "b": a["table"],
        "N": count,
        "H": own,
        "rel": np.arange(count),
        "e": exact,
        "L": shared,
        "M": a["max_distance"],
    }


@cache
def whole_model():
    found = {name: costs.symbol(name) for name in "LVncw"}
    ones = dict.fromkeys(forward_flops().free_symbols, 1)
    return found | {"C": int(forward_flops().subs(ones))}


def steps(a):
    t, (first, second) = a["t"], a["betas"]
    past = np.arange(t)[::-1]
    return {"beta_1": first, "beta_2": second, "a_i": (1 - first) * first**past, "b_i": (1 - second) * second**past}


def of_norm(length):
    def scaled(a):
        g = vector(a["grads"])
        return {"g": length * g / np.linalg.norm(g)}

    return scaled


DRAWN_AS = {"mlp-first-layer": "mlp", "momentum-claims": "momentum-velocity", "clipping-example": "clipping"}
BY_SLUG = {
    "cross-entropy": values(lambda a: scores(a) | {"y": a["target"], "L": None}),
    "softmax-jacobian": values(scores),
    "softmax": values(scores),
    "attention-weights": values(scores),
    "temperature": proofs("s", lambda a: {"z": a["logits"], "T": a["temperature"]}),
    "gradient-flow": values(flow),
    "residual-flow": values(residual),
    "scaled-residual": proofs("sigma tau L=growing-branch:k"),
    "gradient-descent": proofs("lambda=x", lambda a: {"theta_t": vector(a["params"]), "g": vector(a["grads"])}),
    "warmup": values(lambda a: {"eta_t": a["max_lr"]}),
    "clipping-example": values(of_norm(50)),
    "clipping": values(lambda a: {"g": vector(a["grads"])}),
    "logsumexp": proofs("c", lambda a: {"x": a["z"]}),
    "layer-norm": values(lambda a: {"mu": a["x"].mean(-1), "sigma": a["x"].var(-1), "x": a["x"]}),
    "masked-attention": proofs("w", masks),
    "score-variance": proofs("mu nu"),
    "linear-attention": values(linear),
    "dropout": values(dropped),
    "feed-forward-dropout": values(feed),
    "feed-forward": values(feed),
    "label-smoothing": values(smoothed),
    "xavier": values(weights),
    "adam-step-size": values(steps),
    "alibi": proofs("i=j j p", lambda a: {"m_h": run(alibi_slopes, a["num_heads"]), "s": -run(alibi_slopes, 3)}),
    "alibi-slopes": values(lambda a: {"m_h": run(alibi_slopes, a["num_heads"])}),
    "descent-example": values(lambda a: {"alpha": a["lr"], "x": a["x"]}),
    "learned-positions": values(lambda a: {"P": a["table"], "X_tok": a["x"]}),
    "attention-costs": counts("T", "w"),
    "block-costs": counts("n", "f"),
    "cache-costs": counts("L", "H", "G"),
    "model-costs": values(lambda a: whole_model()),
    "attention-gradients": values(attended),
    "beam-search": values(beams),
    "beta2-warmup": values(averaged),
    "exponential-average": values(averaged),
    "calibration-error": values(calibration),
    "greedy": values(choices),
    "top-k": values(choices),
    "top-p": values(choices),
    "gradient-accumulation": values(accumulated),
    "head-weights": values(whole_weights),
    "int8-cache": values(int8),
    "kronecker": values(matrices),
    "matrix-chain-rule": values(matrices),
    "linear-maps": values(lambda a: {"h": a["h"][:1], "W": a["w"], "g": a["h"][:1] @ a["w"]}),
    "mixed-precision": proofs("s", lambda a: {"u": np.array([2.0**-x.precision for x in FORMATS.values()])}),
    "mixture-of-experts": values(experts),
    "momentum-claims": proofs("v=z g lambda", lambda a: {"beta": a["beta"]}),
    "mse": values(regression),
    "near-orthogonality": values(orthogonal),
    "next-token-loss": values(tokens),
    "perplexity": values(tokens),
    "masked-lm-loss": values(tokens),
    "tokenizer-perplexity": values(tokens),
    "online-softmax": values(online),
    "permutation-equivariance": values(equivariant),
    "post-norm-block": proofs("tau", block),
    "rope-scaling": proofs("alpha s", lambda a: {k: v for k, v in angles(a).items() if v is not None}),
    "swiglu": values(swiglu),
    "gelu": values(gated),
    "silu": values(gated),
    "t5-bias": values(biased),
    "token-embedding": values(embedded),
    "weight-tying": values(embedded),
    "training-loss": proofs("n", lambda a: {"K": len(a["losses"])}),
    "unigram-segmentation": values(unigram),
    "byte-pair-encoding": values(pairs_of_bytes),
    "warmup-cosine": values(lambda a: {"D": a["total_steps"] - a["warmup_steps"]}),
    "activation": values(lambda a: {"z^(1)": a["z"], "sigma": mapped(gelu, a["z"])}),
    **dict.fromkeys(
        ("momentum-velocity", "momentum-step", "adam-first-moment", "adam-second-moment"), values(optimizer)
    ),
    **dict.fromkeys(("adam-step", "adam-l2", "adamw"), values(optimizer)),
    **dict.fromkeys(
        ("mlp", "mlp-first-layer", "mlp-output-gradient", "mlp-output-weights", "mlp-hidden-weights"), values(network)
    ),
    "hidden-layer-backward": values(network),
    **dict.fromkeys(("head", "multi-head", "cross-attention", "grouped-heads"), values(heads)),
    **dict.fromkeys(("sinusoidal-encoding", "sinusoidal-shift", "rope", "rope-relative-position"), values(angles)),
    **dict.fromkeys(("block-first-norm", "block-attention", "block-second-norm", "block-output"), values(block)),
    "pre-norm-path": values(block),
    "decoder-block": values(block),
    **dict.fromkeys(("key-cache", "value-cache", "cached-attention"), values(cache_rows)),
}


def drawn(slug, rng):
    """Draw the values of letters that are known by name, those of the table first."""
    sample = EQUATIONS[DRAWN_AS.get(slug, slug)].sample
    a = sample(rng) if sample else {}
    own = BY_SLUG.get(slug, values(lambda _: {}))(a, slug)
    return a, {name: value for name, value in own.items() if value is not None}
