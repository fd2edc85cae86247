"""Activations and their slopes (equation 14)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.exact_inputs import exactly_equal
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import elementwise
from veriformer.spec.equation import Assumption, Equation, Identities, Source, Symbol, step
from veriformer.spec.layers.gelu import gelu, gelu_slope
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, index, positive, real, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks


class Activation(NamedTuple):
    """σ and σ', each a function of the arithmetic and of an array."""

    function: Callable[[Any, Any], Any]
    slope: Callable[[Any, Any], Any]


def relu(xp: Any, z: Any) -> Any:
    """max(z, 0)."""
    return xp.maximum(z, 0)


def relu_slope(xp: Any, z: Any) -> Any:
    """1 for z > 0 and 0 for z ≤ 0, as max(z, 0) / z: without bound where rounding may change the sign of z."""
    zero = exactly_equal(z, 0)
    # e^{log 0} is a zero of which nothing is known, as it must be where z is zero by chance.
    return xp.where(zero, xp.exp(xp.log(relu(xp, z))), relu(xp, z) / xp.where(zero, 1, z))


def sigmoid(xp: Any, z: Any) -> Any:
    """1 / (1 + e^{−z}): without bound where e^{−z} overflows the format, though the result is then zero."""
    return 1 / (1 + xp.exp(-z))


def sigmoid_slope(xp: Any, z: Any) -> Any:
    """σ (1 − σ)."""
    s = sigmoid(xp, z)
    return s * (1 - s)


def tanh(xp: Any, z: Any) -> Any:
    """The hyperbolic tangent."""
    return xp.tanh(z)


def tanh_slope(xp: Any, z: Any) -> Any:
    """1 − tanh²."""
    t = xp.tanh(z)
    return 1 - t * t


ACTIVATIONS = {
    "relu": Activation(relu, relu_slope),
    "sigmoid": Activation(sigmoid, sigmoid_slope),
    "tanh": Activation(tanh, tanh_slope),
    "gelu": Activation(gelu, gelu_slope),
}


OTHERS = {
    "gelu_tanh": Activation(
        lambda xp, z: gelu(xp, z, approximate="tanh"), lambda xp, z: gelu_slope(xp, z, approximate="tanh")
    ),
    "silu": Activation(lambda xp, z: z * sigmoid(xp, z), lambda xp, z: sigmoid(xp, z) + z * sigmoid_slope(xp, z)),
}
"""Activations that networks in the wild have, and that nobody can ask for by the name of equation 14."""


def activate(xp: Any, z: Any, activation: str = "relu") -> Any:
    """h = σ(z), entry by entry, for σ of `relu`, `sigmoid`, `tanh`, `gelu` (14), or one of `OTHERS`."""
    return (ACTIVATIONS | OTHERS)[activation].function(xp, z)


def activate_vjp(xp: Any, z: Any, g: Any, activation: str = "relu") -> Any:
    """dz = g ⊙ σ'(z); at the corner of `relu` the slope is 0."""
    return g * (ACTIVATIONS | OTHERS)[activation].slope(xp, z)


def _sigmoid(z: Any) -> Any:
    return 1 / (1 + sp.exp(-z))


@step()
def _derivatives() -> Identities:
    r"""$\sigma' = \sigma (1 - \sigma)$ for the sigmoid, $1 - \tanh^2$ for tanh, and for ReLU 1 above and 0 below zero:
    each is cheap to get from what the forward pass has computed.
    """
    z, p = real("z"), positive("p")
    yield sp.diff(_sigmoid(z), z), _sigmoid(z) * (1 - _sigmoid(z))
    yield sp.diff(sp.tanh(z), z), 1 - sp.tanh(z) ** 2
    for side in (p, -p):
        xp = Symbolic()
        slope = relu_slope(xp, xp.asarray(side)).value[()]
        yield computed(sp.diff, sp.Max(side, 0), p), slope * sp.diff(side, p)


@step()
def _sigmoid_is_tanh() -> Identities:
    r"""$\sigma(z) = (1 + \tanh \frac{z}{2}) / 2$, and $\sigma(z) + \sigma(-z) = 1$: the two activations are one curve
    at different scales.
    """
    z = real("z")
    yield _sigmoid(z), (1 + sp.tanh(z / 2).rewrite(sp.exp)) / 2
    yield _sigmoid(z) + _sigmoid(-z), 1


@step()
def _largest_slope() -> Identities:
    r"""$\frac{1}{4} - \sigma'(z) = (\sigma(z) - \frac{1}{2})^2 \ge 0$: through each sigmoid a gradient shrinks to a
    quarter or less, which is how it vanishes in deep networks.
    """
    z = real("z")
    s = _sigmoid(z)
    yield sp.Rational(1, 4) - sp.diff(s, z), (s - sp.Rational(1, 2)) ** 2


@step()
def _any_vjp() -> Identities:
    """The vector-Jacobian product is the derivative that SymPy takes of the formula, for all sizes."""
    for activation in ACTIVATIONS:
        yield from pullbacks(activate, activate_vjp, {"z": "n"}, activation=activation)


PRINTED: dict[str, Callable[[Any], Any]] = {
    "relu": lambda z: sp.Max(z, 0),
    "sigmoid": _sigmoid,
    "tanh": lambda z: sp.tanh(z),
    "gelu": lambda z: z * (1 + sp.erf(z / sp.sqrt(2))) / 2,
}
"""The four activations as they are printed."""


@step()
def _any_length() -> Identities:
    """The formula computes σ, entry by entry, for all sizes and each of the four activations."""
    xp, (i, c) = AnyLength(), index("i c")
    z = xp.array("z", dimension("n"), dimension("d"))
    for name, sigma in PRINTED.items():
        yield computed(activate, xp, z, name).then(entry(i, c)), sigma(vector("z")[i, c])


EQUATIONS = (
    Equation(
        slug="activation",
        number="14",
        title="The hidden activation",
        statement=r"\mathbf{h}^{(1)} = \sigma(\mathbf{z}^{(1)})",
        sources=(Source("002", "3.1", 426), Source("002", "2.1.1", 181)),
        symbols=(
            Symbol(r"\mathbf{z}^{(1)}", r"\mathbb{R}^{n \times d_{\text{hidden}}}", "pre-activations of equation 13"),
            Symbol(r"\sigma", r"\mathbb{R} \to \mathbb{R}", "the activation, taken entry by entry"),
        ),
        assumptions=(
            Assumption("the activation is one of relu, sigmoid, tanh, gelu", lambda a: a["activation"] in ACTIVATIONS),
            Assumption("the pre-activations are numbers", lambda a: bool(np.isfinite(a["z"]).all())),
        ),
        sample=lambda rng: {"z": rng.normal(size=(2, 3)) * 3, "activation": str(rng.choice(list(ACTIVATIONS)))},
        formula=activate,
        vjp=activate_vjp,
        steps=(_derivatives, _sigmoid_is_tanh, _largest_slope, _any_length, _any_vjp),
        costs=elementwise(3),
    ),
)
