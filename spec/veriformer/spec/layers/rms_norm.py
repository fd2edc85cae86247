"""Root-mean-square normalisation (document 002, section 3.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic.exact_inputs import unbroadcast
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Identities, Source, Symbol, step
from veriformer.spec.layers.norm_algebra import average, inverse_root, mean_square, x_of
from veriformer.spec.layers.norm_algebra import x_hat as layer_norm_x_hat
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import delta, dimension, index, positive, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step


def rms_norm(xp: Any, x: Any, weight: Any = None, *, eps: float = 1e-6) -> Any:
    """γ ⊙ x / √(mean(x²) + ε) over the last axis; x [..., d], weight γ [d] or None."""
    x_hat, _ = _normalised(xp, x, eps)
    return x_hat if weight is None else x_hat * weight


def rms_norm_vjp(xp: Any, x: Any, weight: Any, g: Any, *, eps: float = 1e-6) -> tuple[Any, Any | None]:
    """dx = (h − x̂ mean(h ⊙ x̂)) / √(mean(x²) + ε) with h = g ⊙ γ; dγ = Σ g ⊙ x̂."""
    x_hat, r = _normalised(xp, x, eps)
    h = g if weight is None else g * weight
    dx = r * (h - x_hat * _mean(xp, h * x_hat))
    return dx, None if weight is None else unbroadcast(xp, g * x_hat, weight.shape)


def _mean(xp: Any, x: Any) -> Any:
    return xp.sum(x, axis=-1, keepdims=True) / x.shape[-1]


def _normalised(xp: Any, x: Any, eps: float) -> tuple[Any, Any]:
    r = 1 / xp.sqrt(_mean(xp, x * x) + eps)
    return x * r, r


def _x_hat(i: Any, x: Callable[[Any], Any] = x_of, eps: Any = None) -> Any:
    return x(i) * inverse_root(mean_square(x), eps)


def _jacobian_of_x_hat(i: Any, k: Any) -> Any:
    d = dimension("d")
    return inverse_root(mean_square()) * (delta(i, k) - _x_hat(i) * _x_hat(k) / d)


@step("mean-square")
def _mean_square_afterwards() -> Identities:
    r"""With $s$ the mean of $x_i^2$, the mean square of the result before the scale is $s / (s + \epsilon)$."""
    yield average(lambda i: _x_hat(i) ** 2), mean_square() / (mean_square() + positive("epsilon"))


@step()
def _scale_invariance() -> Identities:
    r"""Scaling all features by $a > 0$ and $\epsilon$ by $a^2$ changes nothing."""
    i, a, eps = index("i"), positive("a"), positive("epsilon")
    yield _x_hat(i, lambda k: a * x_of(k), a**2 * eps), _x_hat(i)


@step()
def _layer_norm_of_centred() -> Identities:
    r"""RMSNorm of $\mathbf{x} - \mu$ is LayerNorm of $\mathbf{x}$: the two differ by the centring only."""
    i, mean = index("i"), average(x_of)
    yield _x_hat(i, lambda k: x_of(k) - mean), layer_norm_x_hat(i)


@step()
def _fewer_operations() -> Identities:
    """RMSNorm takes four operations for each feature where LayerNorm takes seven, which also finds the mean, takes it
    off and adds a shift; and it has one vector of weights in place of two.
    """
    n, d = costs.symbol("N"), costs.symbol("d")
    here, there = (computed(costs.of, name) for name in ("rms_norm", "layer_norm"))
    yield here.then(lambda cost: cost["other operations"]), symbolic_sum(4 * d, index("i"), n)
    yield there.then(lambda cost: cost["other operations"]), symbolic_sum(7 * d, index("i"), n)
    yield here.then(lambda cost: cost["parameters"]), d
    yield there.then(lambda cost: cost["parameters"]), 2 * d


@step()
def _jacobian() -> Identities:
    r"""$\partial \hat{x}_i / \partial x_k = (\delta_{ik} - \frac{1}{d} \hat{x}_i \hat{x}_k) / \sqrt{s + \epsilon}$."""
    i, k = index("i k")
    yield sp.diff(_x_hat(i), x_of(k)), _jacobian_of_x_hat(i, k)


@step()
def _pullback() -> Identities:
    r"""With $h = g \odot \gamma$: $dx = (h - \hat{x} \, \overline{h \odot \hat{x}}) / \sqrt{s + \epsilon}$."""
    (i, k), d, h = index("i k"), dimension("d"), vector("h")
    printed = inverse_root(mean_square()) * (h[k] - _x_hat(k) * average(lambda j: h[j] * _x_hat(j)))
    yield symbolic_sum(h[i] * _jacobian_of_x_hat(i, k), i, d), printed


@step()
def _any_length() -> Identities:
    """The formula computes the statement, for all sizes."""
    xp, d, i = AnyLength(), dimension("d"), index("i")
    y = computed(rms_norm, xp, xp.array("x", d), xp.array("w", d), eps=positive("epsilon"))
    yield y.then(entry(i)), vector("w")[i] * _x_hat(i)


_any_vjp = vjp_step(lambda: pullbacks(rms_norm, rms_norm_vjp, {"x": "n d", "w": "d"}, eps=positive("epsilon")))


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    d = int(rng.integers(1, 6))
    return {"x": rng.normal(size=(2, d)), "weight": rng.normal(size=d), "eps": 1e-6}


EQUATIONS = (
    Equation(
        slug="rms-norm",
        number=None,
        title="Root-mean-square normalisation",
        statement=r"\text{RMSNorm}(\mathbf{x}) = \gamma \odot \frac{\mathbf{x}}"
        r"{\sqrt{\frac{1}{d}\sum_{i=1}^d x_i^2 + \epsilon}}",
        sources=(Source("002", "3.4", 503),),
        symbols=(
            Symbol(r"\mathbf{x}", r"\mathbb{R}^d", "the features of one token"),
            Symbol(r"\gamma", r"\mathbb{R}^d", "learned scale"),
            Symbol(r"\epsilon", r"\mathbb{R}_{\ge 0}", "a small number", "positive where the features are all zero"),
        ),
        assumptions=(
            Assumption("ε is not negative", lambda a: a["eps"] >= 0),
            Assumption("ε is positive, or no row is zero", lambda a: a["eps"] > 0 or bool(a["x"].any(-1).all())),
        ),
        sample=_sample,
        formula=rms_norm,
        vjp=rms_norm_vjp,
        steps=(
            _mean_square_afterwards,
            _scale_invariance,
            _layer_norm_of_centred,
            _fewer_operations,
            _jacobian,
            _pullback,
            _any_length,
            _any_vjp,
        ),
        costs=costs.lazily("rms_norm"),
    ),
)
