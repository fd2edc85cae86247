"""The feed-forward network (equation 36)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import NETWORK
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.layers.activations import ACTIVATIONS, PRINTED, activate, activate_vjp
from veriformer.spec.layers.dropout import Mask, dropout, dropout_vjp
from veriformer.spec.layers.linear import linear, linear_vjp
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import dimension, index, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic


def feed_forward(
    xp: Any,
    x: Any,
    w1: Any,
    b1: Any,
    w2: Any,
    b2: Any,
    *,
    activation: str = "gelu",
    dropout_p: float = 0.0,
    keep: Mask | None = None,
) -> Any:
    """dropout(σ(x W₁ + b₁)) W₂ + b₂ (36, 47).

    x [..., d], W₁ [d, f], b₁ [f], W₂ [f, d_out], b₂ [d_out]; keep [..., f] holds the hidden entries that dropout
    spares, None outside training; activation is one of `relu`, `sigmoid`, `tanh`, `gelu`.
    """
    h = dropout(xp, activate(xp, linear(xp, x, w1, b1), activation), dropout_p, keep=keep)
    return linear(xp, h, w2, b2)


def feed_forward_vjp(
    xp: Any,
    x: Any,
    w1: Any,
    b1: Any,
    w2: Any,
    b2: Any,
    g: Any,
    *,
    activation: str = "gelu",
    dropout_p: float = 0.0,
    keep: Mask | None = None,
) -> tuple[Any, Any, Any, Any, Any]:
    """(dx, dW₁, db₁, dW₂, db₂): backwards through each layer, with z₁ and h₁ of the forward pass."""
    z = linear(xp, x, w1, b1)
    h = dropout(xp, activate(xp, z, activation), dropout_p, keep=keep)
    dh, dw2, db2 = linear_vjp(xp, h, w2, g)
    dz = activate_vjp(xp, z, dropout_vjp(xp, h, dropout_p, dh, keep=keep), activation)
    dx, dw1, db1 = linear_vjp(xp, x, w1, dz)
    return dx, dw1, db1, dw2, db2


class Case:
    """A network of symbols with its input and a cotangent of its output."""

    def __init__(self, n: int, d: int, f: int, d_out: int) -> None:
        self.xp = xp = TowerArithmetic()
        self.x, self.g = xp.symbols("x", n, d), xp.symbols("g", n, d_out)
        self.weights = [xp.symbols("W", d, f), xp.symbols("b", f), xp.symbols("U", f, d_out), xp.symbols("c", d_out)]

    def printed(self, sigma: Any, factors: Any = 1) -> Any:
        """The statement, for σ as a function of SymPy and the factors of dropout."""
        w1, b1, w2, b2 = (w.value for w in self.weights)
        return (factors * np.frompyfunc(sigma, 1, 1)(self.x.value @ w1 + b1)) @ w2 + b2

    def vjp_pairs(self, **options: Any) -> Identities:
        """Every gradient, ours and SymPy's."""
        y = feed_forward(self.xp, self.x, *self.weights, **options)
        ours = feed_forward_vjp(self.xp, self.x, *(*self.weights, self.g), **options)
        for argument, gradient in zip((self.x, *self.weights), ours, strict=True):
            left = [self.xp.in_full(e) for e in gradient.value.ravel()]
            yield from entrywise(left, computed(self.xp.gradient, y, self.g, argument).each(self.xp.in_full))


def sample(rng: np.random.Generator, activation: str | None = None) -> dict[str, Any]:
    """Arguments of a network of two layers."""
    d, f, d_out = (int(x) for x in rng.integers(1, 4, size=3))
    shapes = {"x": (2, 3, d), "w1": (d, f), "b1": (f,), "w2": (f, d_out), "b2": (d_out,)}
    chosen = activation or str(rng.choice(list(ACTIVATIONS)))
    return {**{name: rng.normal(size=shape) for name, shape in shapes.items()}, "activation": chosen}


@step(scope=Scope.ENUMERATED, detail="2 tokens, (d, d_ffn, d_out) of (1, 2, 1)")
def _position_wise() -> Identities:
    """A token's output depends on that token alone, and is the same at every position: tokens in another order give the
    same outputs in that order.
    """
    # A row alone, and among others that change all at once.
    case = Case(2, 1, 2, 1)
    alone = computed(feed_forward, case.xp, case.x[1:], *case.weights)
    moved = case.xp.asarray(np.array([[sp.Symbol("t", real=True)], [case.x.value[1, 0]]], dtype=object))
    yield from entrywise(computed(feed_forward, case.xp, moved, *case.weights).then(lambda y: y[1:]), alone)
    swapped = computed(feed_forward, case.xp, case.x[::-1], *case.weights)
    yield from entrywise(swapped.then(lambda y: y[::-1]), computed(feed_forward, case.xp, case.x, *case.weights))


@step()
def _key_values() -> Identities:
    """The network is a sum over hidden units: unit c reads the token with column c of $W_1$, and writes row c of $W_2$
    times $h_c$; one unit more adds its own term and changes no other. It is a memory whose entries do not compete,
    unlike those of attention.
    """
    # Hidden unit c, whatever it has read, writes its row of W₂; the output is the sum of what all write.
    (b, c, e), f = index("b c e"), dimension("f")
    h, v = vector("h"), vector("V")
    yield sp.diff(symbolic_sum(h[c] * v[c, b], c, f), v[e, b]), h[e]
    yield symbolic_sum(h[c] * v[c, b], c, f + 1), symbolic_sum(h[c] * v[c, b], c, f) + h[f + 1] * v[f + 1, b]


@step(scope=Scope.ENUMERATED, detail="d = 1, x of either sign; with these weights no two features meet")
def _identity() -> Identities:
    r"""With ReLU and $d_{\text{ffn}} = 2 d$, weights $W_1 = (I, -I)$ and $W_2 = W_1^T$ give $\text{FFN}(x) = x$, as
    $\max(x, 0) - \max(-x, 0) = x$: the wide layer need not lose anything.
    """
    for side in (1, -1):
        xp = TowerArithmetic()
        x = xp.asarray([[side * sp.Symbol("x", positive=True)]])
        y = computed(feed_forward, xp, x, *_two_sided(xp), activation="relu")
        yield y.entry(0, 0), x.value[0, 0]


def _two_sided(xp: Any) -> list[Any]:
    return [xp.asarray(w) for w in ([[1, -1]], [0, 0], [[1], [-1]], [0])]


_any_vjp = vjp_step(
    lambda: pullbacks(feed_forward, feed_forward_vjp, {"x": "n d", "w1": "d f", "b1": "f", "w2": "f o", "b2": "o"})
)


@step()
def _any_length() -> Identities:
    """The formula is the statement, for all sizes."""
    xp, n, d, wide, (i, k, c, a) = AnyLength(), *map(dimension, "ndf"), index("i k c a")
    layers = xp.array("W", d, wide), xp.array("b", wide), xp.array("U", wide, d), xp.array("c", d)
    z = symbolic_sum(vector("x")[i, a] * vector("W")[a, c], a, d) + vector("b")[c]
    y = computed(feed_forward, xp, xp.array("x", n, d), *layers)
    yield y.then(entry(i, k)), symbolic_sum(PRINTED["gelu"](z) * vector("U")[c, k], c, wide) + vector("c")[k]


@erratum(
    kind="contradictory",
    source=Source("003", "11, Mathematical Formulation", 1237),
    printed=r"\text{FFN}(x) = W_2 \cdot \sigma(W_1 x + b_1) + b_2, \quad W_1 \in \mathbb{R}^{"
    r"d_{\text{model}} \times d_{\text{ffn}}}",
    corrected=r"\text{FFN}(x) = \sigma(x W_1 + b_1) W_2 + b_2 \text{ for weights of these shapes}",
)
def _weights_on_the_left() -> Evidence:
    d, f = 1, 2
    xp, x, weights = Symbolic(), np.array([[3]]), [np.array(w) for w in ([[2, -1]], [-1, 5], [[3], [7]], [4])]
    out = feed_forward(xp, xp.asarray(x), *map(xp.asarray, weights), activation="relu").value
    return Evidence(
        "d = 1, d_ffn = 2, W₁ of 1 × 2 as declared: entries of x that W₁ x needs",
        f,
        d,
        letters={
            "FFN": lambda _: out,
            "sigma": lambda z: np.maximum(z, 0),
            "x": x,
            "W_1": weights[0],
            "b_1": weights[1],
            "W_2": weights[2],
            "b_2": weights[3],
        },
    )


@erratum(
    kind="wrong",
    source=Source("003", "11", 1197),
    printed=r"\text{FFNs serve as computational bottlenecks that force the model to compress and process "
    r"information efficiently}",
    corrected=r"\text{the hidden layer is wider than the input: nothing forces it to lose information}",
)
def _expansion_is_no_bottleneck() -> Evidence:
    xp = TowerArithmetic()
    x = xp.asarray([[-2], [0], [3]])
    y = feed_forward(xp, x, *_two_sided(xp), activation="relu")
    lost = bool((x.value != y.value).any())
    return Evidence("d = 1, d_ffn = 2, ReLU, W₁ = (1, -1) = W₂ᵀ, inputs -2, 0 and 3: something is lost", True, lost)


SYMBOLS = (
    Symbol(r"\mathbf{x}", r"\mathbb{R}^{n \times d_{\text{model}}}", "one row per token"),
    Symbol("W_1", r"\mathbb{R}^{d_{\text{model}} \times d_{\text{ffn}}}", "the expansion"),
    Symbol("W_2", r"\mathbb{R}^{d_{\text{ffn}} \times d_{\text{model}}}", "the contraction"),
    Symbol(r"\mathbf{b}_1, \mathbf{b}_2", r"\mathbb{R}^{d_{\text{ffn}}}, \mathbb{R}^{d_{\text{model}}}", "biases"),
)
SHAPES = (
    Assumption("the first layer takes what x has", lambda a: a["x"].shape[-1] == a["w1"].shape[0]),
    Assumption("the second layer takes what the first gives", lambda a: a["w1"].shape[1] == a["w2"].shape[0]),
    Assumption(
        "there is one bias for each output",
        lambda a: a["b1"].shape == a["w1"].shape[1:] and a["b2"].shape == a["w2"].shape[1:],
    ),
)

EQUATIONS = (
    Equation(
        slug="feed-forward",
        number="36",
        title="The feed-forward network",
        statement=r"\text{FFN}(\mathbf{x}) = \text{GELU}(\mathbf{x}W_1 + \mathbf{b}_1)W_2 + \mathbf{b}_2",
        sources=(
            Source("002", "7.1", 909),
            Source("003", "11, Computational Flow", 1219),
            Source("003", "11, Mathematical Formulation", 1237),
            Source("004", "1.2", 61),
        ),
        symbols=SYMBOLS,
        assumptions=SHAPES,
        sample=lambda rng: sample(rng, "gelu"),
        formula=feed_forward,
        vjp=feed_forward_vjp,
        steps=(_any_length, _position_wise, _key_values, _identity, _any_vjp),
        costs=NETWORK,
        errata=(_weights_on_the_left, _expansion_is_no_bottleneck),
    ),
)
