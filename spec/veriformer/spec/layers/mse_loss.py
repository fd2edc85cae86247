"""The mean squared error, and its gradients for a linear model (document 002, section 2.1.1)."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import elementwise
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.layers.linear import linear
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import dimension, index, real, sum_over, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic


def mse_loss(xp: Any, prediction: Any, target: Any) -> Any:
    """1/N Σ_i |ŷ_i − y_i|²: the last axis is the vector, all axes before it count the N samples; [d] is one sample."""
    error = prediction - target
    return xp.sum(error * error) / prod(error.shape[:-1])


def mse_loss_vjp(xp: Any, prediction: Any, target: Any, g: Any) -> tuple[Any, Any]:
    """d prediction = 2/N g (ŷ − y), and d target its opposite."""
    error = prediction - target
    d = error * (g * 2) / prod(error.shape[:-1])
    return d, -d


def prediction(i: Any, k: Any) -> Any:
    """Ŷ_ik = Σ_a X_ia W_ak + b_k."""
    a = sp.Dummy("a", integer=True)
    return symbolic_sum(vector("X")[i, a] * vector("W")[a, k], a, dimension("d")) + vector("b")[k]


def loss() -> Any:
    """The statement for the linear model."""
    i, k = (sp.Dummy(name, integer=True) for name in "ik")
    square = (vector("Y")[i, k] - prediction(i, k)) ** 2
    return symbolic_sum(symbolic_sum(square, k, dimension("o")), i, dimension("N")) / dimension("N")


def _error(i: Any, k: Any) -> Any:
    return prediction(i, k) - vector("Y")[i, k]


@step()
def _weight_gradient() -> Identities:
    r"""$\frac{\partial L}{\partial W} = \frac{2}{N} X^T (Y_{\text{hat}} - Y_{\text{true}})$."""
    (e, m), i, n = index("e m"), sp.Dummy("i", integer=True), dimension("N")
    yield sp.diff(loss(), vector("W")[e, m]), 2 / n * symbolic_sum(vector("X")[i, e] * _error(i, m), i, n)


@step()
def _bias_gradient() -> Identities:
    r"""$\frac{\partial L}{\partial b} = \frac{2}{N} \sum_i (Y_{\text{hat}}^{(i)} - Y_{\text{true}}^{(i)})$."""
    m, i, n = index("m"), sp.Dummy("i", integer=True), dimension("N")
    yield sp.diff(loss(), vector("b")[m]), 2 / n * symbolic_sum(_error(i, m), i, n)


@step()
def _decomposition() -> Identities:
    """The loss of one number c for all is the variance of the targets, plus the squared distance of c from their mean:
    a model that knows nothing does best to say the mean.
    """
    # About the mean of the targets, for the model that always says c.
    i, n, y, c = sp.Dummy("i", integer=True), dimension("N"), vector("y"), real("c")
    mean = symbolic_sum(y[i], i, n) / n
    spread = symbolic_sum((y[i] - mean) ** 2, i, n) / n
    yield symbolic_sum((y[i] - c) ** 2, i, n) / n, spread + (mean - c) ** 2


@step()
def _convex() -> Identities:
    r"""Along a line in the parameters of a linear model the errors are $r + t v$, and its second difference is
    $\frac{2}{N} \sum_i v_i^2 \ge 0$: there is no minimum but the lowest.
    """
    # Along any line in the parameters the loss is a parabola that opens upwards.
    i, n, t = sp.Dummy("i", integer=True), dimension("N"), real("t")
    r, v = vector("r"), vector("v")
    along = symbolic_sum((r[i] + t * v[i]) ** 2, i, n) / n
    yield along.subs(t, t + 1) - 2 * along + along.subs(t, t - 1), 2 / n * symbolic_sum(v[i] ** 2, i, n)


@step()
def _any_length() -> Identities:
    """The formula computes the statement, for all sizes."""
    xp, n, d = AnyLength(), dimension("N"), dimension("d")
    p, t = vector("p"), vector("t")
    total = sum_over(n, lambda i: sum_over(d, lambda a: (p[i, a] - t[i, a]) ** 2))
    yield computed(mse_loss, xp, xp.array("p", n, d), xp.array("t", n, d)).then(entry()), total / n


_any_vjp = vjp_step(lambda: pullbacks(mse_loss, mse_loss_vjp, {"p": "n d", "t": "n d"}))


@step(scope=Scope.ENUMERATED, detail="N = d = 2, o = 1")
def _linear_model() -> Identities:
    """Through the formulas of the loss and of a layer come the gradients as printed."""
    xp = TowerArithmetic()
    x, w, b, y = xp.symbols("X", 2, 2), xp.symbols("W", 2, 1), xp.symbols("b", 1), xp.symbols("Y", 2, 1)
    value = mse_loss(xp, linear(xp, x, w, b), y)
    delta = (x.value @ w.value + b.value) - y.value
    yield from entrywise(computed(xp.gradient, value, xp.asarray(1), w), sp.Rational(2, 2) * x.value.T @ delta)
    yield from entrywise(computed(xp.gradient, value, xp.asarray(1), b), sp.Rational(2, 2) * delta.sum(axis=0))


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    shape = [(3,), (2, 3), (2, 2, 3)][int(rng.integers(3))]
    return {"prediction": rng.normal(size=shape), "target": rng.normal(size=shape)}


EQUATIONS = (
    Equation(
        slug="mse",
        number=None,
        title="Mean squared error",
        statement=r"L = \frac{1}{N} \sum_{i=1}^N \|Y_{\text{true}}^{(i)} - Y_{\text{hat}}^{(i)}\|^2",
        sources=(Source("002", "2.1.1", 148), Source("002", "2.1.1", 154), Source("002", "2.1.1", 158)),
        symbols=(
            Symbol(r"Y_{\text{true}}, Y_{\text{hat}}", r"\mathbb{R}^{N \times o}", "targets and predictions"),
            Symbol("X", r"\mathbb{R}^{N \times d}", "inputs, one row for each sample"),
            Symbol("W, b", r"\mathbb{R}^{d \times o}, \mathbb{R}^o", "weights and biases of the linear model"),
        ),
        assumptions=(
            Assumption("each prediction has a target", lambda a: a["prediction"].shape == a["target"].shape),
            Assumption("there is a sample, and it has entries", lambda a: a["prediction"].size > 0),
        ),
        sample=_sample,
        formula=mse_loss,
        vjp=mse_loss_vjp,
        steps=(
            _weight_gradient,
            _bias_gradient,
            _decomposition,
            _convex,
            _any_length,
            _linear_model,
            _any_vjp,
        ),
        costs=elementwise(3),
    ),
)
