"""Backpropagation through two layers (equations 16 to 18, and the pass of document 002, section 2.1.1)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import NETWORK, elementwise
from veriformer.spec.equation import Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.layers.feed_forward import SHAPES, Case, sample
from veriformer.spec.layers.mlp import SYMBOLS, mlp, mlp_vjp
from veriformer.spec.layers.mse_loss import mse_loss, mse_loss_vjp
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import delta, dimension, index, ranged, real, sum_over, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic, entries

# In the proofs for all sizes: samples i of N, inputs a of d, hidden units c of f, outputs k of o.


over = ranged(i="N", a="d", c="f", k="o")


@step()
def _identity_output() -> Identities:
    r"""The output is $\hat{\mathbf{y}} = \mathbf{z}^{(2)}$, whose Jacobian is the identity: the gradient passes
    unchanged.
    """
    k, g = index("k"), vector("g")
    yield over("k", lambda j: g[j] * delta(j, k)), g[k]


@step()
def _squared_error() -> Identities:
    r"""For the mean squared error it is $\frac{2}{N} (\hat{\mathbf{y}} - \mathbf{y})$."""
    (i, k), n = index("i k"), dimension("N")
    z, y = vector("z"), vector("Y")
    loss = over("i", lambda r: over("k", lambda j: (y[r, j] - z[r, j]) ** 2)) / n
    yield sp.diff(loss, z[i, k]), 2 / n * (z[i, k] - y[i, k])


@step("entries")
def _output_layer() -> Identities:
    r"""With $g = \partial \mathcal{L} / \partial \mathbf{z}^{(2)}$: $\partial \mathcal{L} / \partial W_{ck} = \sum_i
    h_{ic} g_{ik}$ and $\partial \mathcal{L} / \partial b_k = \sum_i g_{ik}$, for any number of samples and any sizes.
    """
    e, m = index("e m")
    g, h, w, b = vector("g"), vector("h"), vector("W"), vector("b")
    z = over("i", lambda i: over("k", lambda k: g[i, k] * (over("c", lambda c: h[i, c] * w[c, k]) + b[k])))
    yield sp.diff(z, w[e, m]), over("i", lambda i: h[i, e] * g[i, m])
    yield sp.diff(z, b[m]), over("i", lambda i: g[i, m])


@step()
def _to_hidden() -> Identities:
    r"""To the hidden layer the gradient goes through the same weights, transposed: $\partial \mathcal{L} / \partial
    h_{ic} = \sum_k g_{ik} W^{(2)}_{ck}$.
    """
    r, e = index("r e")
    g, h, w = vector("g"), vector("h"), vector("W")
    z = over("i", lambda i: over("k", lambda k: g[i, k] * over("c", lambda c: h[i, c] * w[c, k])))
    yield sp.diff(z, h[r, e]), over("k", lambda k: g[r, k] * w[e, k])


@step()
def _rank_one() -> Identities:
    """A single sample gives an outer product: every minor $(h_a g_c)(h_b g_e) - (h_a g_e)(h_b g_c)$ is zero. The
    gradient of N samples has rank N at most.
    """
    (a, b, c, e), h, g = index("a b c e"), vector("h"), vector("g")
    minor = sp.Matrix(2, 2, [h[a] * g[c], h[a] * g[e], h[b] * g[c], h[b] * g[e]])
    yield computed(minor.det), 0


@step("entries")
def _first_layer() -> Identities:
    r"""A small change of $\mathbf{z}^{(1)}$ moves $\mathbf{h}^{(1)}$ by $\sigma'$ times it, so that $\delta_1 = (g
    W^{(2)T}) \odot \sigma'(\mathbf{z}^{(1)})$, and for the weights before it $\mathbf{x}^T \delta_1$, for the biases
    $\sum_i \delta_{1,i}$, in any sizes.
    """
    # To first order h moves by s dz, where s = σ'(z): the loss moves by Σ q s dz with q = g Uᵀ.
    e, m = index("e m")
    g, s, x, w, u, b = (vector(name) for name in ("g", "s", "x", "W", "U", "b"))

    def delta_1(i: Any, c: Any) -> Any:
        return over("k", lambda k: g[i, k] * u[c, k]) * s[i, c]

    def z(i: Any, c: Any) -> Any:
        return over("a", lambda a: x[i, a] * w[a, c]) + b[c]

    moved = over("i", lambda i: over("c", lambda c: delta_1(i, c) * z(i, c)))
    yield sp.diff(moved, w[e, m]), over("i", lambda i: x[i, e] * delta_1(i, m))
    yield sp.diff(moved, b[m]), over("i", lambda i: delta_1(i, m))


@step()
def _any_vjp() -> Identities:
    """The vector-Jacobian product is the derivative that SymPy takes of the formula, for all sizes."""
    arguments = {"x": "n d", "w1": "d f", "b1": "f", "w2": "f o", "b2": "o"}
    for activation in ("relu", "tanh", "gelu"):
        yield from pullbacks(mlp, mlp_vjp, arguments, activation=activation)


@step(scope=Scope.ENUMERATED, detail="one sample, two hidden units, one above and one below zero, by any amount")
def _relu() -> Identities:
    """With ReLU a unit that is off has no gradient, and a unit that is on passes it unchanged."""
    # Two hidden units with given signs, the second one off: z = (pr, -pq).
    p, q, r = sp.symbols("p q r", positive=True)
    for which in range(2):
        xp = TowerArithmetic()
        weights = [xp.asarray([[r, -q]]), xp.asarray([0, 0]), xp.symbols("U", 2, 1), xp.symbols("c", 1)]
        x, g = xp.asarray([[p]]), xp.symbols("g", 1, 1)
        y = mlp(xp, x, *weights)
        ours = mlp_vjp(xp, x, *(*weights, g))
        argument, gradient = ((x, ours[0]), (weights[2], ours[3]))[which]
        yield from entrywise(gradient, computed(xp.gradient, y, g, argument))
    yield ours[1].value[0, 0], g.value[0, 0] * weights[2].value[0, 0] * p


def _printed_gradients(case: Case, y: Any) -> list[Any]:
    """(∂L/∂W₁, ∂L/∂b₁, ∂L/∂W₂, ∂L/∂b₂) as document 002 prints them in section 2.1.1, for tanh."""
    w1, b1, w2, b2 = (w.value for w in case.weights)
    x, n = case.x.value, len(case.x.value)
    a1 = case.xp.tanh(case.xp.asarray(x @ w1 + b1)).value
    d2 = a1 @ w2 + b2 - y.value
    d1 = (d2 @ w2.T) * (1 - a1**2)
    return [x.T @ d1 / n, d1.sum(axis=0) / n, a1.T @ d2 / n, d2.sum(axis=0) / n]


@step(scope=Scope.ENUMERATED, detail="N = 2, one input, two hidden units with tanh, one output")
def _twice_as_printed() -> Identities:
    r"""For $L = \frac{1}{N} \sum_i \|\cdot\|^2$ each gradient is twice what is printed, and is what (16) to (18)
    give.
    """
    case = Case(2, 1, 2, 1)
    xp, y = case.xp, case.xp.symbols("y", 2, 1)
    output = mlp(xp, case.x, *case.weights, activation="tanh")
    loss = mse_loss(xp, output, y)
    g, _ = mse_loss_vjp(xp, output, y, xp.asarray(1))
    ours = mlp_vjp(xp, case.x, *(*case.weights, g), activation="tanh")[1:]
    for w, gradient, printed in zip(case.weights, ours, _printed_gradients(case, y), strict=True):
        true = computed(xp.gradient, loss, xp.asarray(1), w)
        yield from entrywise(gradient, true)
        yield from entrywise([2 * e for e in entries(printed)], true)


@step()
def _halved_loss() -> Identities:
    r"""The printed gradient belongs to $L / 2$, or to $L$ with half the rate: $\alpha \frac{g}{2} = \frac{\alpha}{2}
    g$. The descent takes the same path, at another pace.
    """
    alpha, g, w = real("alpha g w")
    yield w - alpha * (g / 2), w - (alpha / 2) * g
    (i, k), n = index("i k"), dimension("N")
    z, y = vector("z"), vector("Y")
    halved = over("i", lambda r: over("k", lambda j: (y[r, j] - z[r, j]) ** 2)) / (2 * n)
    yield sp.diff(halved, z[i, k]), (z[i, k] - y[i, k]) / n


def _pulled_back(place: int, *at: Any) -> Any:
    """An entry of the gradient that the formula computes for one of x, W₁, b₁, W₂ and b₂, with tanh in between."""
    xp, n, d, wide, out = AnyLength(), *map(dimension, "ndfo")
    layers = xp.array("W", d, wide), xp.array("b", wide), xp.array("U", wide, out), xp.array("c", out)
    found = computed(mlp_vjp, xp, xp.array("x", n, d), *layers, xp.array("g", n, out), activation="tanh")
    return found.then(lambda gradients: entry(*at)(gradients[place]))


def _hidden(i: Any, c: Any) -> Any:
    w = lambda a: vector("x")[i, a] * vector("W")[a, c]  # noqa: E731
    return sp.tanh(sum_over("d", w, "a") + vector("b")[c])


@step()
def _any_output() -> Identities:
    r"""The gradient of the output goes on as it is: the formula's gradient by $\mathbf{b}_2$ sums it over the rows."""
    k = index("k")
    yield _pulled_back(4, k), sum_over("n", lambda i: vector("g")[i, k], "i")


@step()
def _any_output_weights() -> Identities:
    """The vector-Jacobian product is the statement, for all sizes (here with tanh)."""
    c, k = index("c k")
    yield _pulled_back(3, c, k), sum_over("n", lambda i: _hidden(i, c) * vector("g")[i, k], "i")


@step()
def _any_hidden_weights() -> Identities:
    r"""The vector-Jacobian product is the statement, for all sizes (here with tanh, whose slope is $1 - \tanh^2$)."""
    e, c = index("e c")

    def through(i: Any) -> Any:
        back = sum_over("o", lambda k: vector("g")[i, k] * vector("U")[c, k], "k")
        return vector("x")[i, e] * back * (1 - _hidden(i, c) ** 2)

    yield _pulled_back(1, e, c), sum_over("n", through, "i")


@erratum(
    kind="contradictory",
    source=Source("002", "2.1.1", 201),
    printed=r"\frac{\partial L}{\partial W_2} = \frac{1}{N} A_1^T \delta_2",
    corrected=r"\frac{\partial L}{\partial W_2} = \frac{2}{N} A_1^T \delta_2 \text{ for the loss of line "
    r"148, as line 154 has it; likewise } b_2, W_1, b_1",
)
def _half_the_gradient() -> Evidence:
    # N = 1, A₁ = 1, W₂ = 1, b₂ = 0, Y = 0: L = (A₁ W₂)², whose slope by W₂ is exactly that of a parabola.
    slope = (Fraction(2) ** 2 - Fraction(0) ** 2) / 2
    hidden, (w, v) = np.array([[1, 2], [4, 3], [1, 1]]), sp.symbols("w v")
    loss = sum((a * w + b * v) ** 2 for a, b in hidden) / sp.Integer(3)
    return Evidence(
        "N = 1, A₁ = 1, W₂ = 1, b₂ = 0, Y_true = 0: ∂L/∂W₂ for L of line 148",
        Fraction(1),
        slope,
        letters={
            "dL/dW_2": np.array([[sp.diff(loss, w).subs({w: 3, v: 5})], [sp.diff(loss, v).subs({w: 3, v: 5})]]),
            "N": 3,
            "A_1": hidden,
            "delta_2": hidden @ [[3], [5]],
            "b_2": 0,
            "W_1": 0,
            "b_1": 0,
        },
    )


@erratum(
    kind="imprecise",
    source=Source("002", "3.2", 445),
    printed=r"\frac{\partial \mathcal{L}}{\partial \mathbf{z}^{(2)}} = \frac{\partial \mathcal{L}}"
    r"{\partial \hat{\mathbf{y}}}",
    corrected=r"\text{so for } \hat{\mathbf{y}} = \mathbf{z}^{(2)} \text{, which section 3 does not say; "
    r"an output activation adds the factor } \sigma'(\mathbf{z}^{(2)})",
)
def _needs_a_linear_output() -> Evidence:
    z = sp.Symbol("z", real=True)
    slope = sp.diff(1 / (1 + sp.exp(-z)), z).subs(z, 0)
    return Evidence(
        "ŷ = sigmoid(z₂), L = ŷ, z₂ = 0: ∂L/∂z₂, given that ∂L/∂ŷ is 1",
        sp.S.One,
        slope,
        letters={"y_hat": 0, "z^(2)": 0, "sigma'": lambda x: slope.subs(z, x)},
        values=(slope,),
    )


@erratum(
    kind="imprecise",
    source=Source("002", "2.1.1", 239),
    printed=r"\delta_2 \text{: How much does changing each output neuron's value affect the loss?}",
    corrected=r"\text{that is } \frac{2}{N} \delta_2",
)
def _delta_is_not_the_slope() -> Evidence:
    n, error = 4, Fraction(1)
    return Evidence(
        "N = 4, error 1 at one output: how much the loss changes with it",
        error,
        Fraction(2, n) * error,
        letters={"N": n, "delta_2": error},
        values=(Fraction(2, n) * error,),
    )


_BACK = (
    *SYMBOLS,
    Symbol(r"\sigma'", r"\mathbb{R} \to \mathbb{R}", "the slope of the activation, taken entry by entry"),
    Symbol(r"\odot", r"(A, B) \mapsto A_{ij} B_{ij}", "the product entry by entry"),
)

EQUATIONS = (
    Equation(
        slug="mlp-output-gradient",
        number="16",
        title="The gradient at the output",
        statement=r"\frac{\partial \mathcal{L}}{\partial \mathbf{z}^{(2)}} = \frac{\partial \mathcal{L}}{\partial "
        r"\hat{\mathbf{y}}}",
        sources=(Source("002", "3.2", 445),),
        symbols=_BACK,
        assumptions=SHAPES,
        sample=sample,
        formula=mlp,
        vjp=mlp_vjp,
        steps=(_identity_output, _squared_error, _any_output),
        costs=elementwise(1, arrays=3),
        errata=(_needs_a_linear_output,),
    ),
    Equation(
        slug="mlp-output-weights",
        number="17",
        title="The gradient of the second layer's weights",
        statement=r"\frac{\partial \mathcal{L}}{\partial W^{(2)}} = (\mathbf{h}^{(1)})^T \frac{\partial \mathcal{L}}"
        r"{\partial \mathbf{z}^{(2)}}",
        sources=(Source("002", "3.2", 452),),
        symbols=_BACK,
        assumptions=SHAPES,
        sample=sample,
        formula=mlp,
        vjp=mlp_vjp,
        steps=(_output_layer, _rank_one, _any_output_weights, _any_vjp),
        costs=NETWORK,
    ),
    Equation(
        slug="mlp-hidden-weights",
        number="18",
        title="The gradient of the first layer's weights",
        statement=r"\frac{\partial \mathcal{L}}{\partial W^{(1)}} = \mathbf{x}^T \left[ \left( \frac{\partial "
        r"\mathcal{L}}{\partial \mathbf{z}^{(2)}} W^{(2)T} \right) \odot \sigma'(\mathbf{z}^{(1)}) \right]",
        sources=(Source("002", "3.2", 453),),
        symbols=_BACK,
        assumptions=SHAPES,
        sample=sample,
        formula=mlp,
        vjp=mlp_vjp,
        steps=(_to_hidden, _first_layer, _any_hidden_weights, _relu),
        costs=NETWORK,
    ),
    Equation(
        slug="hidden-layer-backward",
        number=None,
        title="The backward pass of the network with one hidden layer",
        statement=r"\delta_2 = Y_{\text{hat}} - Y_{\text{true}}, \quad \frac{\partial L}{\partial W_2} = \frac{1}{N} "
        r"A_1^T \delta_2, \quad \delta_1 = (\delta_2 W_2^T) \odot \sigma'(Z_1), \quad \frac{\partial L}{\partial W_1} "
        r"= \frac{1}{N} X^T \delta_1",
        sources=tuple(Source("002", "2.1.1", line) for line in (196, 201, 204, 209, 214, 217)),
        symbols=_BACK,
        assumptions=SHAPES,
        sample=sample,
        formula=mlp,
        vjp=mlp_vjp,
        steps=(_twice_as_printed, _halved_loss, _any_hidden_weights),
        costs=NETWORK,
        errata=(_half_the_gradient, _delta_is_not_the_slope),
    ),
)
