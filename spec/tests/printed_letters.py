"""Values of the letters of statements, as the executable formulas compute them, for what no source prints.

By the slug of the equation: the letters, and the values of those formulas that state no relation, in turn.
"""

from itertools import product

import numpy as np
import sympy as sp

from veriformer.spec import costs
from veriformer.spec.arithmetic import Float, Symbolic
from veriformer.spec.attention.online_softmax import State, merge
from veriformer.spec.blocks.decoder_block import decoder_block
from veriformer.spec.blocks.transformer_block import attention_sublayer, feed_forward_sublayer
from veriformer.spec.efficient.costs_attention import square
from veriformer.spec.efficient.costs_cache import cache_numbers, with_cache, without_cache
from veriformer.spec.generation.beam_search import beam_search
from veriformer.spec.generation.greedy import greedy
from veriformer.spec.generation.top_k_filter import top_k_filter
from veriformer.spec.generation.top_p_filter import top_p_filter
from veriformer.spec.heads.multi_head_attention import multi_head_attention
from veriformer.spec.language.tokenizer_perplexity import perplexity_per_unit
from veriformer.spec.language.unigram_segment import unigram_segment
from veriformer.spec.layers.activations import activate
from veriformer.spec.layers.feed_forward import feed_forward
from veriformer.spec.layers.layer_norm import layer_norm
from veriformer.spec.layers.linear import linear
from veriformer.spec.layers.mixture_of_experts import mixture_of_experts
from veriformer.spec.optimization.accumulate_gradients import accumulate_gradients
from veriformer.spec.optimization.averages import corrected_average
from veriformer.spec.optimization.descent_example import descend_parabola
from veriformer.spec.optimization.gradient_norms import normalised_energy
from veriformer.spec.positions.alibi import alibi_slopes
from veriformer.spec.positions.rope import rope
from veriformer.spec.scores.softmax import softmax, softmax_vjp
from veriformer.spec.vectors.inner_products import largest_inner_product
from veriformer.spec.vectors.orthogonality import mean_squared_cosine

XP = Symbolic()
HALF, THIRD = sp.Rational(1, 2), sp.Rational(1, 3)
X, C = np.array([[1, 2], [3, 5]]), np.array([[7, 4], [6, 9]])
WEIGHT, BIAS = np.array([[2, 3, 5], [7, 1, 4]]), np.array([8, 6, 9])


def computed(formula, *arguments, **options):
    result = formula(XP, *(XP.asarray(x) if isinstance(x, np.ndarray) else x for x in arguments), **options)
    return result.value[()] if result.value.ndim == 0 else result.value


def divergence():
    y, p = np.array([THIRD, 2 * THIRD]), np.array([HALF / 2, 3 * HALF / 2])
    return {"n": 2, "y": y, "p": p}


def turned():
    turn = computed(rope, np.eye(2, dtype=int), np.array([5]), base=sp.Integer(7)).T
    q = np.array([[2], [3]])
    return {
        "i": 0,
        "Theta": 0,
        "theta": lambda _: 1,
        "m": 5,
        "R^(i)": lambda *_: turn,
        "q_m^(i)": turn @ q,
        "q^(i)": q,
    }


def next_token():
    def probability(t, first, _, last):
        return sp.Rational(1, t + 1) if (first, last) == (1, t - 1) else sp.Integer(5)

    return {"L": sp.log(2 * 3 * 4), "T": 3, "P": probability, "x": lambda t: t, "ldots": 0}


def merged():
    states = [State(*(XP.asarray(x) for x in state)) for state in ((1, 2, 3), (4, 5, 6))]
    names = [*zip(("m", "l", "o"), (1, 2, 3), strict=True), *zip(("m'", "l'", "o'"), (4, 5, 6), strict=True)]
    both = tuple(x.value[()] for x in merge(XP, *states))
    return {**dict(names), "m_bar": both[0], "oplus": lambda *_: both}


def energy():
    x, eps = np.array([1, 2, 4]), THIRD
    normalised = (x - sp.Rational(7, 3)) / sp.sqrt(sp.Rational(14, 9) + eps)
    return {"L": computed(normalised_energy, x, eps=eps), "d": 3, "n": 3, "x": x, "LayerNorm": lambda _: normalised}


def projected():
    return {
        "head": [X @ C],
        "i": 1,
        "X": X,
        "C": C,
        "Attention": lambda q, k, v: q @ k.T @ v,
        "head_i": X @ X @ (C @ C).T @ (C @ WEIGHT),
        "W_i^Q": X,
        "W_i^K": C,
        "W_i^V": WEIGHT,
    }


def row_gradient():
    z, g = np.array([0, sp.log(3)]), np.array([2, 5])
    p = computed(softmax, z)
    columns = {("S", 1): computed(softmax_vjp, z, XP.asarray(g))[:, None], ("P", 1): g[:, None]}
    square_of = {"diag": lambda column: np.diag(np.ravel(column)), "P_r": p[:, None], "r": 1}
    return {**square_of, "S": "S", "P": "P", "G": lambda *place: columns[place]}


def cached():
    k, v, q = np.array([[1, 2], [0, 1], [3, 1]]), WEIGHT.T, np.array([[1, 1]])
    weights = computed(softmax, (q @ k.T) / sp.sqrt(2))
    letters = {"q_new": q, "K_full": k, "K_cache": k[:2], "k_new": k[2:], "V_full": v, "V_cache": v[:2], "v_new": v[2:]}
    return {**letters, "d_k": 2, "output": weights @ v, "softmax": lambda z: computed(softmax, z)}


def experts():
    x, router, w1 = np.array([[1, 2]]), np.array([[0, 1, 2], [1, 0, 1]]), np.array([[[2], [1]], [[1], [1]], [[3], [1]]])
    b1, w2, b2 = np.array([[1], [2], [3]]), np.array([[[2]], [[3]], [[5]]]), np.array([[1], [0], [2]])
    chosen = np.array([[True, False, True]])
    outputs = [activate(XP, XP.asarray(x @ w1[e] + b1[e]), "gelu").value @ w2[e] + b2[e] for e in range(3)]
    y = computed(mixture_of_experts, x, *map(XP.asarray, (router, w1, b1, w2, b2)), chosen=chosen)
    weights = computed(softmax, np.where(chosen, x @ router, -sp.oo))
    letters = {"y": y, "T": (1, 3), "p": weights[0], "x": x, "R": router, "FFN": lambda e: lambda _: outputs[e - 1]}
    return {**letters, "softmax_T": lambda _: weights[0], "top_k": lambda _: (1, 3)}


def layer(number):
    x, z = np.array([[1, 2]]), computed(linear, np.array([[1, 2]]), XP.asarray(WEIGHT), XP.asarray(BIAS))
    inputs = {1: "x", 2: "h^(1)"}[number]
    return {f"z^({number})": z, inputs: x, f"W^({number})": WEIGHT, f"b^({number})": BIAS}


def hidden():
    z = np.array([[2, -1]])
    return {"z^(1)": z, "h^(1)": computed(activate, z), "sigma": lambda x: np.maximum(x, 0)}


def averaged():
    values = np.array([3, 5])
    m = [0, 3 * HALF, HALF * 3 * HALF + 5 * HALF]
    return {"t": 2, "beta": HALF, "m_hat": [0, computed(corrected_average, values, HALF)], "m": lambda t: m[t]}


def uniform():
    """Directions along three axes, both ways: their squared cosines have the mean of the sphere's."""
    angles = np.array([0, sp.pi, *[sp.pi / 2] * 4])
    return {"E": lambda cosines: sum(cosines) / 6, "theta": angles, "d": 1 / mean_squared_cosine(XP, 3).value[()]}


def nearest():
    q, v = np.array([2, 3]), np.array([[1, 1], [4, 0], [0, 5]])
    largest = largest_inner_product(XP, XP.asarray(q), XP.asarray(v)).value[()]
    columns = [row[:, None] for row in v]
    return {"q": q[:, None], "V": columns, "v^*": next(c for c in columns if q @ c == largest)}


def most_probable():
    p = [sp.Rational(x, 10) for x in (2, 5, 3)]
    chosen = int(greedy(np.array([[float(sp.log(x)) for x in p]]))[0])
    return {"chosen": chosen + 1, "i": [{"i": i} for i in (1, 2, 3)], "p": p}


def model(ids):
    """Made-up log-probabilities of two tokens, of which 0 ends the text: another formula has another maximum."""
    return [-sp.Rational(x) for x in (("2", "1/2"), ("7/2", "3"), ("2", "7/4"))[len(ids)]]


def searched():
    """Every text that a beam wide enough has: ended, or of three tokens."""
    texts = [ids for n in (1, 2, 3) for ids in product((0, 1), repeat=n)]
    whole = [ids for ids in texts if 0 not in ids[:-1] and (ids[-1] == 0 or len(ids) == 3)]
    choices = [{"x": ids, "n": len(ids)} for ids in whole]
    return {"x": choices, "alpha": 1, "P": lambda token, before: sp.exp(model(before)[token])}


def found_by_beam():
    def step(batch):
        return [model(ids[1:]) for ids in batch.tolist()]

    return beam_search(step, [1], beam_width=8, max_length=4, eos=0, length_penalty=1)[0][1:]


def nucleus():
    """The threshold lies below the mass of the tokens that reach it: no token satisfies what is printed."""
    p, threshold = [HALF, HALF / 2, HALF / 2], HALF + HALF / 4
    kept = computed(top_p_filter, np.array([sp.log(x) for x in p]), p=threshold)
    top = [i for i, z in enumerate(kept, 1) if z != -sp.oo]
    return {"i": [1, 2, 3], "p": threshold, "p_": p, "top": lambda _: top, "Categorical": lambda *kept: kept}


def truncated():
    p = [sp.Rational(x, 10) for x in (2, 5, 3)]
    names = {"p": p, "k": 2, "Categorical": lambda *kept: np.array(kept) / sum(kept)}
    return names | {"top-k": lambda p, k: tuple(x if x in sorted(p)[-k:] else sp.S.Zero for x in p)}


def kept_of_most_probable():
    z = np.array([sp.log(sp.Rational(x, 10)) for x in (2, 5, 3)])
    return computed(softmax, computed(top_k_filter, z, k=2))


PIECES = {"a": -1, "b": -1, "ab": -1, "ba": -1, "aab": -3}


def segmented():
    text = "aabab"
    cuts = [cut for n in range(1, 6) for cut in product(PIECES, repeat=n) if "".join(cut) == text]
    choices = [{"tau": cut, "k": len(cut)} for cut in cuts]
    return {r"\tau _ 1 \cdots \tau _ k = s": choices, "P": lambda piece: sp.exp(PIECES[piece])}


FLOAT = Float()
RNG = np.random.default_rng(0)
TOKENS, CONTEXT = RNG.normal(size=(2, 1, 3, 2))
NORM = {f"norm{i}_{what}": np.full(2, value) for i in (1, 2) for what, value in (("weight", 1.0), ("bias", 0.0))}
NETWORK = {"w1": RNG.normal(size=(2, 4)), "b1": RNG.normal(size=4), "w2": RNG.normal(size=(4, 2)), "b2": np.ones(2)}
PARAMS = {**{f"w_{z}": RNG.normal(size=(2, 2)) for z in "qkvo"}, **NETWORK, **NORM}


def run(formula, *arguments, **options):
    return formula(FLOAT, *map(FLOAT.asarray, arguments), **options).value


def attend(tokens, **options):
    return run(multi_head_attention, tokens, *(PARAMS[f"w_{z}"] for z in "qkvo"), num_heads=1, **options)


def inner(tokens):
    return run(feed_forward, tokens, *NETWORK.values())


PARTS = {"LN": lambda tokens: run(layer_norm, tokens), "F": inner, "FFN": inner}


def equivariant():
    order = np.eye(3)[[1, 2, 0]]
    return {"Pi": order, "X": TOKENS[0], "f": lambda tokens: attend(tokens.astype(float)[None])[0]}


def stream(norm):
    after = feed_forward_sublayer(FLOAT, FLOAT.asarray(TOKENS), PARAMS, norm=norm).value
    return lambda layer: {1: TOKENS, 2: after}[layer]


def decoded():
    x, context = FLOAT.asarray(TOKENS), FLOAT.asarray(CONTEXT)
    heads = {"num_heads": 1}
    first = attention_sublayer(FLOAT, x, PARAMS, is_causal=True, **heads)
    second = attention_sublayer(FLOAT, first, PARAMS, context=context, **heads)
    whole = decoder_block(FLOAT, x, context, PARAMS, PARAMS, **heads).value
    attention = {
        "Masked": lambda z: attend(z, is_causal=True),
        "Cross": lambda z, c: attend(z, context=FLOAT.asarray(c)),
    }
    return {"x": TOKENS, "C": CONTEXT, "h": first.value, "h'": second.value, "y": whole, **attention, **PARTS}


def symbols(**named):
    return {"O": lambda x: x, **{name: costs.symbol(letter) for name, letter in named.items()}}


x, y = sp.symbols("x y")
n, d, t = (costs.symbol(name) for name in "ndt")
groups = costs.kv_cache_bytes().subs({costs.symbol("d_v"): costs.symbol("d_k"), costs.symbol("w"): 1})

LETTERS = {
    "greedy": (most_probable, (lambda letters: letters["chosen"],)),
    "inner-product-search": (nearest, ()),
    "top-k": (truncated, (lambda _: kept_of_most_probable(),)),
    "top-p": (nucleus, (lambda _: (),)),
    "permutation-equivariance": (equivariant, ()),
    "beam-search": (searched, (lambda _: found_by_beam(),)),
    "unigram-segmentation": (segmented, (lambda _: unigram_segment("aabab", PIECES),)),
    "divergence": (divergence, ()),
    "rope": (turned, ()),
    "next-token-loss": (next_token, ()),
    "online-softmax": (merged, ()),
    "gradient-norms": (energy, ()),
    "cross-attention": (projected, ()),
    "attention-gradients": (row_gradient, ()),
    "cached-attention": (cached, ()),
    "mixture-of-experts": (experts, ()),
    "mlp-first-layer": (lambda: layer(1), ()),
    "mlp": (lambda: layer(2), ()),
    "activation": (hidden, ()),
    "exponential-average": (averaged, ()),
    "cache-costs": (
        lambda: symbols(t="t", d_model="d", d="d", L="L", H="H", d_k="d_k"),
        (
            costs.order(without_cache()).coeff(d, 1) * d,
            costs.order(with_cache()).coeff(t, 1) * t,
            costs.order(cache_numbers().subs(costs.symbol("G"), costs.symbol("H"))),
        ),
    ),
    "attention-costs": (
        lambda: symbols(n="n", d="d"),
        (
            costs.order(square(costs.attention_flops())),
            costs.order(square(costs.reference_attention_bytes())),
        ),
    ),
    "grouped-heads": (
        lambda: {**symbols(B="B", G="G", n="n_k", d_k="d_k"), "K": 0, "R": x, "V": x ** (groups / 2)},
        (),
    ),
    "gradient-accumulation": (
        lambda: {
            "g": accumulate_gradients(XP, [[XP.asarray(3)], [XP.asarray(5)]], [2, 4])[0].value[()],
            "n": 2,
            "dS": [3, 5],
            "n_": [2, 4],
        },
        (),
    ),
    "descent-example": (
        lambda: {
            "x_old": 7,
            "x_new": computed(descend_parabola, np.array(7), lr=sp.Rational(1, 10), steps=1),
            "x_0": 3,
        },
        (),
    ),
    "quadratic-forms": (lambda: {"x": x, "y": y, "nabla": lambda f: np.array([[sp.diff(f, x)], [sp.diff(f, y)]])}, ()),
    "near-orthogonality": (uniform, ()),
    "pre-norm-path": (lambda: {"l": 1, "h": stream("pre"), **PARTS}, ()),
    "post-norm-block": (lambda: {"l": 1, "h": stream("post"), **PARTS}, ()),
    "decoder-block": (decoded, ()),
    "alibi-slopes": (lambda: {"h": 1, "H": 4, "m": computed(alibi_slopes, 4), "ldots": 0}, ()),
    "tokenizer-perplexity": (
        lambda: (
            {"PPL": perplexity_per_unit(XP, XP.asarray(np.zeros((3, 2), int)), np.array([0, 1, 0]), 3).value[()]}
            | {"P": lambda _: sp.Rational(1, 8), "text": 0, "n": 3}
        ),
        (),
    ),
    "beta2-warmup": (lambda: {"beta_2^initial": sp.Rational("0.99"), "beta_2^final": sp.Rational("0.999")}, ()),
}
