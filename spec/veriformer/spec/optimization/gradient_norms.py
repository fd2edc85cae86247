"""The printed gradient norms of a stack that ends in LayerNorm, and why they are so small (document 004, 3.4)."""

from __future__ import annotations

from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.layers.norm_algebra import average, over_features, variance, x_hat, x_of
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, index, positive, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.published import holds, rounds_to
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic

# Document 004, line 419: the norms of the gradients of the first ten parameters.
_PRINTED = (
    "7.056015647322056e-07 3.6120545132689585e-07 1.0183679250985733e-06 9.552564961268217e-07 3.444132801178057e-07 "
    "9.345910143565561e-07 7.831649213585479e-07 3.713057594723068e-07 1.2017155768262455e-06 9.130194484896492e-07"
)


def normalised_energy(xp: Any, x: Any, *, eps: Any = 1e-5) -> Any:
    """The mean of LayerNorm(x)² over the last axis, x [..., d], without scale and shift: the loss of the example."""
    centred, spread = _parts(xp, x)
    return xp.sum(centred * centred / (spread + eps), axis=-1) / x.shape[-1]


def normalised_energy_vjp(xp: Any, x: Any, g: Any, *, eps: Any = 1e-5) -> Any:
    """dx = 2 ε (x − μ) / (d (σ² + ε)²) · g for g [...]."""
    centred, spread = _parts(xp, x)
    scale = (spread + eps) * (spread + eps) * x.shape[-1]
    return centred * 2 / scale * eps * xp.reshape(g, (*g.shape, 1))


def _parts(xp: Any, x: Any) -> tuple[Any, Any]:
    d = x.shape[-1]
    centred = x - xp.sum(x, axis=-1, keepdims=True) / d
    return centred, xp.sum(centred * centred, axis=-1, keepdims=True) / d


def _centred(i: Any) -> Any:
    return x_of(i) - average(x_of)


@step()
def _almost_constant() -> Identities:
    r"""The mean square of what LayerNorm gives out is $1 - \frac{\epsilon}{\sigma^2 + \epsilon}$: this loss is 1, but
    for ε, whatever the layers before it do.
    """
    eps = positive("epsilon")
    yield average(lambda i: x_hat(i) ** 2), 1 - eps / (variance() + eps)


@step()
def _gradient() -> Identities:
    r"""So its gradient is $\frac{2 \epsilon (x_k - \mu)}{d (\sigma^2 + \epsilon)^2}$: proportional to ε."""
    k, d, eps = index("k"), dimension("d"), positive("epsilon")
    yield sp.diff(variance(), vector("x")[k]), 2 * _centred(k) / d
    s = positive("s")
    yield sp.diff(1 - eps / (s + eps), s) * 2 * _centred(k) / d, 2 * eps * _centred(k) / (d * (s + eps) ** 2)


@step()
def _norm() -> Identities:
    r"""Its norm is $\frac{2 \epsilon \sigma}{\sqrt{d} (\sigma^2 + \epsilon)^2}$, since $\sum_k (x_k - \mu)^2 = d
    \sigma^2$.
    """
    i, d, (s, eps) = index("i"), dimension("d"), positive("s epsilon")
    c = vector("c")
    square = symbolic_sum((2 * eps * c[i] / (d * (s + eps) ** 2)) ** 2, i, d)
    yield square, 4 * eps**2 / (d * (s + eps) ** 4) * (symbolic_sum(c[i] ** 2, i, d) / d)


@step()
def _last_norm() -> Identities:
    r"""Not so for the scale and shift of that norm itself, on which the loss does depend: at $\gamma = 1$, $\beta = 0$
    the gradients are $\frac{2}{d} \hat{x}_i^2$ and $\frac{2}{d} \hat{x}_i$. The former sum to $2 - \frac{2
    \epsilon}{\sigma^2 + \epsilon}$, and are small for no ε.
    """
    k, d, eps = index("k"), dimension("d"), positive("epsilon")
    weight, bias, x = vector("w"), vector("b"), vector("u")
    loss = average(lambda i: (weight[i] * x[i] + bias[i]) ** 2)
    yield sp.diff(loss, weight[k]), 2 / d * (weight[k] * x[k] + bias[k]) * x[k]
    yield sp.diff(loss, bias[k]), 2 / d * (weight[k] * x[k] + bias[k])
    yield over_features(lambda i: 2 / d * x_hat(i) ** 2), 2 - 2 * eps / (variance() + eps)


@step()
def _any_length() -> Identities:
    """The formula computes the statement, for all sizes."""
    xp, d = AnyLength(), dimension("d")
    loss = computed(normalised_energy, xp, xp.array("x", d), eps=positive("epsilon"))
    yield loss.then(entry()), average(lambda i: x_hat(i) ** 2)


_any_vjp = vjp_step(lambda: pullbacks(normalised_energy, normalised_energy_vjp, {"x": "n d"}, eps=positive("epsilon")))


@step(scope=Scope.NUMERIC, detail="the printed digits")
def _printed() -> Identities:
    r"""For this reason all ten printed norms, of parameters before the last norm, are below $\epsilon = 10^{-5}$: the
    largest is $0.12 \epsilon$.
    """
    norms = [sp.Rational(text) for text in _PRINTED.split()]
    yield holds(max(norms) < sp.Rational("1e-5"))
    yield rounds_to(max(norms) / sp.Rational("1e-5"), "0.12")


@erratum(
    kind="wrong",
    source=Source("004", "3.4", 422),
    printed=r"\text{we can see that normalization helps keep gradients consistent across layers}",
    corrected=r"\text{the loss of this example does not see what enters its last norm, but for } \epsilon \text{, "
    r"so that "
    r"every gradient before that norm is of the size of } \epsilon \text{; it shows nothing about layers}",
)
def _nothing_to_see() -> Evidence:
    xp = TowerArithmetic()
    gradient = normalised_energy_vjp(xp, xp.asarray([1, 2, 4]), xp.asarray(1), eps=0)
    return Evidence(
        "the gradient of this loss at x = (1, 2, 4) with ε = 0",
        "not zero",
        tuple(gradient.value),
        letters={"epsilon": 0},
    )


@erratum(
    kind="imprecise",
    source=Source("004", "3.4", 389),
    printed=r"\text{Gradient Magnitudes per Layer … simulate a random Transformer stack to observe this: the first "
    r"10 params}",
    corrected=r"\text{six parameters of the first of six blocks, and four of the second; and the blocks have no "
    r"attention}",
)
def _ten_parameters() -> Evidence:
    per_block = 2 * 2 + 2  # Weight and bias of two linear layers and of a norm.
    return Evidence("blocks that ten parameters are of", 6, -(-10 // per_block))


EQUATIONS = (
    Equation(
        slug="gradient-norms",
        number=None,
        title="Gradient norms of a stack that ends in LayerNorm",
        statement=r"\mathcal{L} = \frac{1}{d} \sum_i \text{LayerNorm}(\mathbf{x})_i^2",
        sources=(Source("004", "3.4", 411), Source("004", "3.4", 419), Source("004", "3.4", 422)),
        symbols=(
            Symbol(r"\mathbf{x}", r"\mathbb{R}^d", "what enters the last LayerNorm, of mean μ and variance σ²"),
            Symbol(r"\epsilon", r"\mathbb{R}_{> 0}", "its small number", r"$10^{-5}$ in the example"),
        ),
        assumptions=(
            Assumption("ε is positive", lambda a: a["eps"] > 0),
            Assumption("scale and shift of the norm are still 1 and 0", lambda a: True),
        ),
        sample=lambda rng: {"x": rng.normal(size=(2, int(rng.integers(2, 6)))), "eps": 1e-5},
        formula=normalised_energy,
        vjp=normalised_energy_vjp,
        steps=(_almost_constant, _gradient, _norm, _last_norm, _printed, _any_length, _any_vjp),
        errata=(_nothing_to_see, _ten_parameters),
    ),
)
