"""SwiGLU: a feed-forward network with a gate (document 003, stage 6)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic import Float
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import GATED, gated_flops, gated_parameters, network_flops
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.layers.linear import as_rows
from veriformer.spec.layers.silu import silu, silu_slope
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import delta, dimension, index, sum_over, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic


def swiglu(xp: Any, x: Any, w_gate: Any, w_up: Any, w_down: Any) -> Any:
    """(SiLU(x W_gate) ⊙ (x W_up)) W_down, for x [..., d], W_gate and W_up [d, f], W_down [f, d_out]; no biases."""
    return xp.matmul(silu(xp, xp.matmul(x, w_gate)) * xp.matmul(x, w_up), w_down)


def swiglu_vjp(xp: Any, x: Any, w_gate: Any, w_up: Any, w_down: Any, g: Any) -> tuple[Any, Any, Any, Any]:
    """(dx, dW_gate, dW_up, dW_down): the product rule over the gate and what it lets through."""
    gate, up = xp.matmul(x, w_gate), xp.matmul(x, w_up)
    opened = silu(xp, gate)
    dh = xp.matmul(g, xp.swapaxes(w_down, 0, 1))
    d_gate, d_up = dh * up * silu_slope(xp, gate), dh * opened
    both = xp.concat([w_gate, w_up], axis=1)  # one sum over the columns of both, which many programs keep as one matrix
    dx = xp.matmul(xp.concat([d_gate, d_up], axis=-1), xp.swapaxes(both, 0, 1))
    return dx, _outer(xp, x, d_gate), _outer(xp, x, d_up), _outer(xp, opened * up, g)


def _outer(xp: Any, x: Any, g: Any) -> Any:
    """Xᵀ G over all rows."""
    return xp.matmul(xp.swapaxes(as_rows(xp, x), 0, 1), as_rows(xp, g))


class _Case:
    def __init__(self, n: int, d: int, f: int, d_out: int) -> None:
        self.xp = xp = TowerArithmetic()
        shapes = {"x": (n, d), "G": (d, f), "U": (d, f), "D": (f, d_out)}
        self.arguments = [xp.symbols(name, *shape) for name, shape in shapes.items()]
        self.g = xp.symbols("g", n, d_out)


@step()
def _any_length() -> Identities:
    """The formula is the statement without biases, times the down projection, for all sizes."""
    xp, (t, o) = AnyLength(), index("t o")
    n, d, f, out = map(dimension, ("n", "d", "f", "o"))
    x, gate, up, down = map(vector, "xGUD")
    arrays = [xp.array(*a) for a in (("x", n, d), ("G", d, f), ("U", d, f), ("D", f, out))]

    def hidden(c: Any) -> Any:
        opened = sum_over(d, lambda a: x[t, a] * gate[a, c])
        return opened / (1 + sp.exp(-opened)) * sum_over(d, lambda a: x[t, a] * up[a, c])

    yield computed(swiglu, xp, *arrays).then(entry(t, o)), sum_over(f, lambda c: hidden(c) * down[c, o])


@step(scope=Scope.ENUMERATED, detail="(n, d, d_ffn, d_out) of (2, 1, 1, 1) and (1, 2, 2, 1)")
def _vjp() -> Identities:
    """The vector-Jacobian product is the formula's derivative, for the input and all weights."""
    for sizes in ((2, 1, 1, 1), (1, 2, 2, 1)):
        case = _Case(*sizes)
        y = swiglu(case.xp, *case.arguments)
        for argument, gradient in zip(case.arguments, swiglu_vjp(case.xp, *(*case.arguments, case.g)), strict=True):
            yield from entrywise(gradient, computed(case.xp.gradient, y, case.g, argument))


@step()
def _up_is_linear() -> Identities:
    """For an open gate s the output is linear in the up projection, with gradient $s_m x_e W_{3,m}$: through it
    gradients pass without a slope of an activation.
    """
    (c, e, m), d, f = index("c e m"), dimension("d"), dimension("f")
    a = sp.Dummy("a", integer=True)
    s, x, u, w = vector("s"), vector("x"), vector("U"), vector("W")
    y = symbolic_sum(s[c] * symbolic_sum(x[a] * u[a, c], a, d) * w[c, 1], c, f)
    yield sp.diff(y, u[e, m]), symbolic_sum(s[c] * delta(c, m) * x[e] * w[c, 1], c, f)


@step()
def _matching() -> Identities:
    r"""With three matrices, $d_{\text{ffn}} = \frac{8}{3} d$ gives $8 d^2$ weights and as many FLOPs as a network of
    two with $d_{\text{ffn}} = 4 d$.
    """
    d = costs.symbol("d")
    same = {costs.symbol("f"): sp.Rational(8, 3) * d, costs.symbol("o"): d}
    yield computed(gated_parameters).then(lambda e: e.subs(same, simultaneous=True)), 2 * d * (4 * d)
    standard = network_flops().subs({costs.symbol("f"): 4 * d, costs.symbol("o"): d}, simultaneous=True)
    yield computed(gated_flops).then(lambda e: e.subs(same, simultaneous=True)), standard


@erratum(
    kind="contradictory",
    source=Source("003", "11, Mathematical Formulation", 1300),
    printed=r"d_{\text{ffn}} = \frac{8}{3} d_{\text{model}} \text{ (parameter count matching)}",
    corrected=r"\text{the count matches for three matrices; line 1285 has two, which give } \frac{16}{3} "
    r"d_{\text{model}}^2",
)
def _third_matrix() -> Evidence:
    d = 3
    return Evidence(
        "d = 3, d_ffn = 8, without biases: weights of the formula as printed",
        8 * d * d,
        2 * d * 8,
        letters={"d_model": d},
        values=(2 * d * 8,),
    )


@erratum(
    kind="imprecise",
    source=Source("003", "11, Mathematical Formulation", 1285),
    printed=r"\text{Gated FFN: } (W_1 x + b_1) \odot \text{SiLU}(W_2 x + b_2)",
    corrected=r"\text{a feed-forward network needs a projection back to } d_{\text{model}}",
)
def _no_way_back() -> Evidence:
    d, d_ffn = 3, 8
    return Evidence("d = 3, d_ffn = 8: entries of SwiGLU(x), to be added to x", d, d_ffn, letters={"d_model": d})


@erratum(
    kind="wrong",
    source=Source("003", "11", 1205),
    printed=r"\text{Activation function: element-wise nonlinearity (GELU, ReLU, or SwiGLU)}",
    corrected=r"\text{SwiGLU is a layer with weights; the element-wise activation in it is SiLU}",
)
def _no_elementwise_activation() -> Evidence:
    xp, w = Float(), np.array([[1.0], [1.0]])
    firsts = [float(swiglu(xp, *map(xp.asarray, ([[1.0, b]], w, w, [[1.0]]))).value[0, 0]) for b in (0.0, 1.0)]
    point = "d = 2, all weights 1, x₁ = 1: the first output for x₂ = 0, and for x₂ = 1"
    return Evidence(point, round(firsts[0], 3), round(firsts[1], 3))


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    d, f, d_out = (int(x) for x in rng.integers(1, 4, size=3))
    shapes = {"x": (2, 3, d), "w_gate": (d, f), "w_up": (d, f), "w_down": (f, d_out)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


EQUATIONS = (
    Equation(
        slug="swiglu",
        number=None,
        title="SwiGLU",
        statement=r"\text{SwiGLU}(x) = (W_1 x + b_1) \odot \text{SiLU}(W_2 x + b_2)",
        sources=(
            Source("003", "11, Mathematical Formulation", 1285),
            Source("003", "11, Mathematical Formulation", 1300),
        ),
        symbols=(
            Symbol("x", r"\mathbb{R}^{d_{\text{model}}}", "the input, a row in the formula"),
            Symbol("W_1, W_2", r"\mathbb{R}^{d_{\text{model}} \times d_{\text{ffn}}}", "up projection and gate"),
            Symbol("W_3", r"\mathbb{R}^{d_{\text{ffn}} \times d_{\text{model}}}", "down projection, not printed"),
        ),
        assumptions=(
            Assumption("gate and up projection have one shape", lambda a: a["w_gate"].shape == a["w_up"].shape),
            Assumption("they take what x has", lambda a: a["x"].shape[-1] == a["w_up"].shape[0]),
            Assumption("the down projection takes what they give", lambda a: a["w_up"].shape[1] == len(a["w_down"])),
        ),
        sample=_sample,
        formula=swiglu,
        vjp=swiglu_vjp,
        steps=(_any_length, _matching, _up_is_linear, _vjp),
        costs=GATED,
        errata=(_third_matrix, _no_way_back, _no_elementwise_activation),
    ),
)
