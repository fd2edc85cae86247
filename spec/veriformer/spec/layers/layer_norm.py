"""Layer normalisation (equation 19)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic.exact_inputs import unbroadcast
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Source, Symbol, erratum, step
from veriformer.spec.layers.norm_algebra import average, jacobian, pulled_back, variance, x_hat, x_of
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, index, positive, real, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic


def layer_norm(xp: Any, x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5) -> Any:
    """γ ⊙ (x − μ) / √(σ² + ε) + β, with the mean μ and the biased variance σ² of the last axis.

    x [..., d], weight γ and bias β [d] or None. The variance is taken of the centred x, in two passes.
    """
    x_hat, _ = _normalised(xp, x, eps)
    y = x_hat if weight is None else x_hat * weight
    return y if bias is None else y + bias


def layer_norm_vjp(
    xp: Any, x: Any, weight: Any, bias: Any, g: Any, *, eps: float = 1e-5
) -> tuple[Any, Any | None, Any | None]:
    """dx = (h − mean h − x̂ mean(h ⊙ x̂)) / √(σ² + ε) with h = g ⊙ γ; dγ = Σ g ⊙ x̂; dβ = Σ g."""
    x_hat, r = _normalised(xp, x, eps)
    h = g if weight is None else g * weight
    dx = r * (h - _mean(xp, h) - x_hat * _mean(xp, h * x_hat))
    d_weight = None if weight is None else unbroadcast(xp, g * x_hat, weight.shape)
    return dx, d_weight, None if bias is None else unbroadcast(xp, g, bias.shape)


def _mean(xp: Any, x: Any) -> Any:
    return xp.sum(x, axis=-1, keepdims=True) / x.shape[-1]


def _normalised(xp: Any, x: Any, eps: float) -> tuple[Any, Any]:
    centred = x - _mean(xp, x)
    r = 1 / xp.sqrt(_mean(xp, centred * centred) + eps)
    return centred * r, r


@step()
def _mean_zero() -> Identities:
    r"""The normalised features $\hat{x}_i = (x_i - \mu) / \sqrt{\sigma^2 + \epsilon}$ have mean 0."""
    yield average(x_hat), 0


@step("variance")
def _unit_variance() -> Identities:
    r"""Their variance is $\sigma^2 / (\sigma^2 + \epsilon)$: 1 for $\epsilon = 0$, less otherwise."""
    yield average(lambda i: x_hat(i) ** 2), variance() / (variance() + positive("epsilon"))


@step()
def _two_forms_of_the_variance() -> Identities:
    r"""$\frac{1}{d} \sum (x_i - \mu)^2 = \frac{1}{d} \sum x_i^2 - \mu^2$ over the reals. In floats the right-hand side
    cancels where the mean is large; the formula uses the left.
    """
    yield variance(), average(lambda i: x_of(i) ** 2) - average(x_of) ** 2


@step()
def _shift_invariance() -> Identities:
    """Adding one number to all features changes nothing."""
    i, c = index("i"), real("c")
    yield x_hat(i, lambda k: x_of(k) + c), x_hat(i)


@step()
def _scale_invariance() -> Identities:
    r"""Scaling all features by $a > 0$ and $\epsilon$ by $a^2$ changes nothing; for $\epsilon = 0$ the norm does not
    see the scale at all.
    """
    i, a, eps = index("i"), positive("a"), positive("epsilon")
    yield x_hat(i, lambda k: a * x_of(k), a**2 * eps), x_hat(i)


@step()
def _jacobian() -> Identities:
    r"""$\partial \hat{x}_i / \partial x_k = (\delta_{ik} - \frac{1}{d} - \frac{1}{d} \hat{x}_i \hat{x}_k) /
    \sqrt{\sigma^2 + \epsilon}$.
    """
    i, k = index("i k")
    yield sp.diff(x_hat(i), x_of(k)), jacobian(i, k)


@step()
def _pullback() -> Identities:
    r"""With $h = g \odot \gamma$: $dx = (h - \overline{h} - \hat{x} \, \overline{h \odot \hat{x}}) / \sqrt{\sigma^2 +
    \epsilon}$, where bars are means; its entries sum to zero.
    """
    (i, k), d, h = index("i k"), dimension("d"), vector("h")
    printed = pulled_back(k, lambda j: h[j])
    yield symbolic_sum(h[i] * jacobian(i, k), i, d), printed
    yield symbolic_sum(printed, k, d), 0


_any_vjp = vjp_step(
    lambda: pullbacks(layer_norm, layer_norm_vjp, {"x": "n d", "w": "d", "b": "d"}, eps=positive("epsilon"))
)


@step()
def _any_length() -> Identities:
    """The formula computes the statement, for every d."""
    xp, d, i = AnyLength(), dimension("d"), index("i")
    y = computed(layer_norm, xp, *(xp.array(name, d) for name in "xwb"), eps=positive("epsilon"))
    yield y.then(entry(i)), vector("w")[i] * x_hat(i) + vector("b")[i]


@erratum(
    "unit-variance",
    kind="imprecise",
    source=Source("002", "3.3", 493),
    printed=r"\text{Make all the numbers have zero average and unit variance}",
    corrected=r"\text{zero average and variance } \frac{\sigma^2}{\sigma^2 + \epsilon}",
)
def _small_spread() -> Evidence:
    x_hat = sp.Rational(1, 1000) / sp.sqrt(sp.Rational(1, 10**6) + sp.Rational(1, 10**5))
    return Evidence(
        "x = (0.001, -0.001) and ε = 1e-5, the variance of the result",
        1,
        x_hat**2,
        letters={"sigma": sp.Rational(1, 1000), "epsilon": sp.Rational(1, 10**5)},
        values=(x_hat**2,),
    )


@erratum(
    kind="wrong",
    source=Source("004", "1.2", 74),
    printed=r"\mu \text{ and } \sigma^2 \text{ are the mean and variance per feature}",
    corrected=r"\mu \text{ and } \sigma^2 \text{ are the mean and variance over the features, per token}",
)
def _statistics_per_feature() -> Evidence:
    xp, x = TowerArithmetic(), np.array([[0, 2], [4, 6]])
    per_feature, per_token = (layer_norm(xp, xp.asarray(a), eps=0).value for a in (x.T, x))
    return Evidence(
        "X = ((0, 2), (4, 6)) and ε = 0, the first row",
        tuple(per_feature.T[0]),
        tuple(per_token[0]),
        letters={"mu": 2, "sigma": 2},
        values=(4,),
    )


@erratum(
    kind="wrong",
    source=Source("004", "3.3", 374),
    printed=r"\frac{\partial \mathcal{L}}{\partial x_i} \propto \frac{1}{\sqrt{\sigma^2 + \epsilon}} "
    r"\left[ "
    r"\frac{\partial \mathcal{L}}{\partial \hat{x}_i} - \frac{1}{d} \sum_j \frac{\partial \mathcal{L}}"
    r"{\partial \hat{x}_j} - \hat{x}_i \sum_j \frac{\partial \mathcal{L}}{\partial \hat{x}_j} \hat{x}_j "
    r"\right]",
    corrected=r"\frac{\partial \mathcal{L}}{\partial x_i} = \frac{1}{\sqrt{\sigma^2 + \epsilon}} \left[ "
    r"\frac{\partial \mathcal{L}}{\partial \hat{x}_i} - \frac{1}{d} \sum_j \frac{\partial \mathcal{L}}"
    r"{\partial \hat{x}_j} - \frac{1}{d} \hat{x}_i \sum_j \frac{\partial \mathcal{L}}{\partial \hat{x}_j} "
    r"\hat{x}_j \right]",
)
def _gradient_without_mean() -> Evidence:
    x, eps = sp.symbols("x_1:4", real=True), sp.Rational(1, 10)
    xp = TowerArithmetic()
    x_hat = layer_norm(xp, xp.asarray(list(x)), eps=eps).value
    at = dict(zip(x, (0, 1, 3), strict=True))
    r = 1 / sp.sqrt(sp.Rational(14, 9) + eps)
    # The loss x̂_1 has the cotangent (1, 0, 0); entries two and three are compared as a ratio, for "∝" hides a factor.
    printed = [r * (0 - sp.Rational(1, 3) - x_hat[k] * x_hat[0]).subs(at) for k in (1, 2)]
    actual = [sp.diff(x_hat[0], x[k]).subs(at) for k in (1, 2)]
    return Evidence(
        "x = (0, 1, 3), ε = 0.1 and the loss x̂_1, the ratio of the gradient's last two entries",
        sp.nsimplify(sp.simplify(printed[1] / printed[0])),
        sp.nsimplify(sp.simplify(actual[1] / actual[0])),
        letters={
            "i": range(1, 4),
            "d": 3,
            "n": 3,
            "sigma": sp.sqrt(sp.Rational(14, 9)),
            "epsilon": eps,
            "x_hat": [e.subs(at) for e in x_hat],
            "dL/dx_hat": [1, 0, 0],
            "dL/dx": [sp.diff(x_hat[0], e).subs(at) for e in x],
        },
    )


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    d = int(rng.integers(2, 6))
    return {
        "x": rng.normal(size=(2, d)) + rng.choice((-10, 10)),
        "weight": rng.normal(size=d),
        "bias": rng.normal(size=d),
        "eps": 1e-5,
    }


EQUATIONS = (
    Equation(
        slug="layer-norm",
        number="19",
        title="Layer normalisation",
        statement=r"\text{LayerNorm}(\mathbf{x}) = \gamma \odot \frac{\mathbf{x} - \mu}{\sqrt{\sigma^2 + \epsilon}} "
        r"+ \beta",
        sources=(Source("002", "3.3", 474), Source("004", "1.2", 69)),
        symbols=(
            Symbol(r"\mathbf{x}", r"\mathbb{R}^d", "the features of one token"),
            Symbol(r"\mu", r"\mathbb{R}", "their mean"),
            Symbol(r"\sigma^2", r"\mathbb{R}_{\ge 0}", "their variance, divided by d"),
            Symbol(r"\gamma, \beta", r"\mathbb{R}^d", "learned scale and shift"),
            Symbol(r"\epsilon", r"\mathbb{R}_{\ge 0}", "a small number", "positive where the features are all equal"),
        ),
        assumptions=(
            Assumption("ε is not negative", lambda a: a["eps"] >= 0),
            Assumption(
                "ε is positive, or no row is constant", lambda a: a["eps"] > 0 or bool((np.ptp(a["x"], -1) > 0).all())
            ),
        ),
        sample=_sample,
        formula=layer_norm,
        vjp=layer_norm_vjp,
        steps=(
            _mean_zero,
            _unit_variance,
            _two_forms_of_the_variance,
            _shift_invariance,
            _scale_invariance,
            _jacobian,
            _pullback,
            _any_length,
            _any_vjp,
        ),
        costs=costs.lazily("layer_norm"),
        errata=(_small_spread, _statistics_per_feature, _gradient_without_mean),
    ),
)
