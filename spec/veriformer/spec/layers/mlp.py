"""The forward pass of a network of two layers (equations 13 and 15; 14 is in `activations`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import LAYER, NETWORK
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.layers.activations import PRINTED
from veriformer.spec.layers.feed_forward import SHAPES, Case, feed_forward, feed_forward_vjp, sample
from veriformer.spec.layers.linear import linear, linear_vjp
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import delta, dimension, index, real, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic

Five = tuple[Any, Any, Any, Any, Any]


def mlp(xp: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any, *, activation: str = "relu") -> Any:
    """σ(x W₁ + b₁) W₂ + b₂ (13–15), for x [..., d_in]; activation is `relu`, `sigmoid`, `tanh` or `gelu`."""
    return feed_forward(xp, x, w1, b1, w2, b2, activation=activation)


def mlp_vjp(xp: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any, g: Any, *, activation: str = "relu") -> Five:
    """(dx, dW₁, db₁, dW₂, db₂) for the cotangent g of the output (16–18)."""
    return feed_forward_vjp(xp, x, w1, b1, w2, b2, g, activation=activation)


def _linear_vjp(xp: Any, x: Any, w: Any, b: Any, g: Any) -> tuple[Any, Any, Any]:
    return linear_vjp(xp, x, w, g)


def _entry(x: Any, w: Any, i: Any, c: Any) -> Any:
    a = sp.Dummy("a", integer=True)
    return symbolic_sum(x(i, a) * w[a, c], a, dimension("d"))


@step()
def _jacobian() -> Identities:
    r"""$\partial z_{ic} / \partial W_{ek} = x_{ie} \delta_{ck}$, $\partial z_{ic} / \partial b_k = \delta_{ck}$ and
    $\partial z_{ic} / \partial x_{ie} = W_{ec}$: all that backpropagation needs.
    """
    (i, c, e, k), x, w = index("i c e k"), vector("x"), vector("W")
    z = _entry(lambda i, a: x[i, a], w, i, c) + vector("b")[c]
    yield sp.diff(z, w[e, k]), x[i, e] * delta(c, k)
    yield sp.diff(z, vector("b")[k]), delta(c, k)
    yield sp.diff(z, x[i, e]), w[e, c]


@step()
def _affine() -> Identities:
    """A layer takes straight lines to straight lines, at the same pace."""
    (i, c), t, x, y, w = index("i c"), real("t"), vector("x"), vector("y"), vector("W")
    b = vector("b")[c]
    mixed = _entry(lambda i, a: (1 - t) * x[i, a] + t * y[i, a], w, i, c) + b
    ends = [_entry(lambda i, a, v=v: v[i, a], w, i, c) + b for v in (x, y)]
    yield mixed, (1 - t) * ends[0] + t * ends[1]


@step()
def _slope() -> Identities:
    r"""A step of h along feature e moves output c by $h W_{ec}$, wherever it begins: for one feature, $y = mx + b$, by
    h times the slope m.
    """
    (i, c, e), h, x, w, b = index("i c e"), real("h"), vector("x"), vector("W"), vector("b")
    moved = _entry(lambda i, a: x[i, a] + h * delta(a, e), w, i, c) + b[c]
    yield moved - (_entry(lambda i, a: x[i, a], w, i, c) + b[c]), h * w[e, c]


@step()
def _bias_as_weight() -> Identities:
    """A bias is the weight of one more feature that is always 1."""
    # Feature d + 1 is one; its weights are the biases.
    (c, a), d, x, w = index("c a"), dimension("d"), vector("x"), vector("W")
    extended = symbolic_sum((x[a] * (1 - delta(a, d + 1)) + delta(a, d + 1)) * w[a, c], a, d + 1)
    yield extended.doit(), symbolic_sum(x[a] * w[a, c], a, d) + w[d + 1, c]


@step("formula", scope=Scope.ENUMERATED, detail="(n, d_in, d_hidden) of (2, 3, 2) and (1, 1, 1)")
def _first_formula() -> Identities:
    """The formula is the statement, row by row."""
    for n, d, f in ((2, 3, 2), (1, 1, 1)):
        xp = TowerArithmetic()
        x, w, b = xp.symbols("x", n, d), xp.symbols("W", d, f), xp.symbols("b", f)
        printed = [sum(r[a] * w.value[a, c] for a in range(d)) + b.value[c] for r in x.value for c in range(f)]
        yield from entrywise(computed(linear, xp, x, w, b), printed)


_any_vjp = vjp_step(lambda: pullbacks(linear, _linear_vjp, {"x": "n d", "W": "d f", "b": "f"}))


@step()
def _collapse() -> Identities:
    """Without the activation two layers are one: $(xW + b)U + c = x(WU) + (bU + c)$. What depth adds comes from what
    stands between the products.
    """
    (a, c, k), d, f = index("a c k"), dimension("d"), dimension("f")
    x, w, u, b, e = vector("x"), vector("W"), vector("U"), vector("b"), vector("c")
    two = symbolic_sum((symbolic_sum(x[a] * w[a, c], a, d) + b[c]) * u[c, k], c, f) + e[k]
    yield (
        two,
        symbolic_sum(x[a] * symbolic_sum(w[a, c] * u[c, k], c, f), a, d) + symbolic_sum(b[c] * u[c, k], c, f) + e[k],
    )


@step(scope=Scope.ENUMERATED, detail="two hidden units, one above and one below zero, by any amount")
def _relu() -> Identities:
    """With ReLU, units below zero drop out, and the others are linear: on each such region the network is one layer."""
    # The signs of the two hidden units are given, and the unit below zero is switched off.
    xp = TowerArithmetic()
    p, q = sp.symbols("p q", positive=True)
    u, b = xp.symbols("U", 2, 1), xp.symbols("c", 1)
    y = computed(mlp, xp, xp.asarray([[p]]), xp.asarray([[1, -q]]), xp.asarray([q, 0]), u, b)
    yield y.entry(0, 0), (p + q) * u.value[0, 0] + b.value[0]


@step(scope=Scope.ENUMERATED, detail="3 hidden units, a swap and a cycle")
def _hidden_order() -> Identities:
    """The order of the hidden units means nothing: weights that compute the same are never unique."""
    case = Case(1, 2, 3, 1)
    w1, b1, w2, b2 = case.weights
    y = computed(mlp, case.xp, case.x, *case.weights, activation="tanh")
    for order in ([1, 0, 2], [2, 0, 1]):
        moved = computed(mlp, case.xp, case.x, w1[:, order], b1[order], w2[order], b2, activation="tanh")
        yield from entrywise(moved, y)


@step()
def _any_layer() -> Identities:
    """The formula of one layer is the statement, for all sizes."""
    xp, n, d, wide, (i, c) = AnyLength(), *map(dimension, "ndf"), index("i c")
    layer = computed(linear, xp, xp.array("x", n, d), xp.array("W", d, wide), xp.array("b", wide))
    yield layer.then(entry(i, c)), _entry(lambda i, a: vector("x")[i, a], vector("W"), i, c) + vector("b")[c]


@step()
def _any_length() -> Identities:
    """The formula of both layers is the statement, for all sizes and each of the four activations."""
    xp, n, d, wide, out, (i, k, c) = AnyLength(), *map(dimension, "ndfo"), index("i k c")
    layers = xp.array("W", d, wide), xp.array("b", wide), xp.array("U", wide, out), xp.array("c", out)
    z = _entry(lambda i, a: vector("x")[i, a], vector("W"), i, c) + vector("b")[c]
    for name, sigma in PRINTED.items():
        y = computed(mlp, xp, xp.array("x", n, d), *layers, activation=name)
        yield y.then(entry(i, k)), symbolic_sum(sigma(z) * vector("U")[c, k], c, wide) + vector("c")[k]


def _sample_first(rng: np.random.Generator) -> dict[str, Any]:
    a = sample(rng)
    return {"x": a["x"], "w": a["w1"], "b": a["b1"]}


SYMBOLS = (
    Symbol(r"\mathbf{x}", r"\mathbb{R}^{1 \times d_{\text{in}}}", "the input, one row for each sample"),
    Symbol("W^{(1)}", r"\mathbb{R}^{d_{\text{in}} \times d_{\text{hidden}}}", "the weights of the first layer"),
    Symbol("W^{(2)}", r"\mathbb{R}^{d_{\text{hidden}} \times d_{\text{out}}}", "the weights of the second layer"),
    Symbol(
        r"\mathbf{b}^{(1)}, \mathbf{b}^{(2)}", r"\mathbb{R}^{d_{\text{hidden}}}, \mathbb{R}^{d_{\text{out}}}", "biases"
    ),
)

EQUATIONS = (
    Equation(
        slug="mlp-first-layer",
        number="13",
        title="The first layer",
        statement=r"\mathbf{z}^{(1)} = \mathbf{x} W^{(1)} + \mathbf{b}^{(1)}",
        sources=(Source("002", "3.1", 426), Source("002", "2.1.1", 178), Source("002", "2.1.1", 143)),
        symbols=SYMBOLS,
        assumptions=(
            Assumption("the weights take what x has", lambda a: a["x"].shape[-1] == a["w"].shape[0]),
            Assumption("there is one bias for each output", lambda a: a["b"].shape == a["w"].shape[1:]),
        ),
        sample=_sample_first,
        formula=linear,
        vjp=_linear_vjp,
        steps=(_jacobian, _affine, _slope, _bias_as_weight, _any_layer, _first_formula, _any_vjp),
        costs=LAYER,
    ),
    Equation(
        slug="mlp",
        number="15",
        title="The second layer, and the whole network",
        statement=r"\mathbf{z}^{(2)} = \mathbf{h}^{(1)} W^{(2)} + \mathbf{b}^{(2)}",
        sources=(Source("002", "3.1", 426), Source("002", "2.1.1", 184)),
        symbols=SYMBOLS,
        assumptions=SHAPES,
        sample=sample,
        formula=mlp,
        vjp=mlp_vjp,
        steps=(_collapse, _any_length, _relu, _hidden_order),
        costs=NETWORK,
    ),
)
