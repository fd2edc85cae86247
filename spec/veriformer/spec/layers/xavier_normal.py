"""Xavier initialization: the variance of the first weights (equation 49)."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.layers.activations import activate
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import delta, dimension, index, positive, symbolic_sum, vector
from veriformer.spec.proofs.provenance import Computed, computed, flat
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic


def xavier_variance(xp: Any, n_in: int, n_out: int) -> Any:
    """2 / (n_in + n_out): the variance of each weight of a layer [n_in, n_out] (49)."""
    return xp.asarray(2) / (xp.asarray(n_in) + n_out)


def _sizes() -> tuple[Any, Any, Any]:
    return dimension("n"), dimension("m"), positive("v")


@step()
def _forward() -> Identities:
    r"""With independent weights of mean 0 and variance v, an output $\sum_a x_a w_a$ has mean square $v \sum_a x_a^2$:
    features keep their mean square where $n_{\text{in}} v = 1$.
    """
    # E[w_a w_b] = v δ_ab for independent weights of mean zero.
    (a, b), (n, _, v), x = index("a b"), _sizes(), vector("x")
    second = symbolic_sum(symbolic_sum(x[a] * x[b] * v * delta(a, b), a, n), b, n)
    yield second, v * symbolic_sum(x[a] ** 2, a, n)
    # With features of mean square s, the output's is n v s.
    s = positive("s")
    yield v * symbolic_sum(s, a, n), n * v * s


@step()
def _backward() -> Identities:
    r"""A gradient $\sum_c g_c w_c$ has $v \sum_c g_c^2$: gradients keep theirs where $n_{\text{out}} v = 1$."""
    (a, b), (_, m, v), g = index("a b"), _sizes(), vector("g")
    second = symbolic_sum(symbolic_sum(g[a] * g[b] * v * delta(a, b), a, m), b, m)
    yield second, v * symbolic_sum(g[a] ** 2, a, m)
    s = positive("s")
    yield v * symbolic_sum(s, a, m), m * v * s


def _computed() -> Computed:
    n, m, _ = _sizes()
    return computed(xavier_variance, AnyLength(), n, m).then(entry())


def _variance() -> Any:
    return _computed().value


@step()
def _compromise() -> Identities:
    r"""(49) makes the two gains average to one: $\frac{1}{2}(n_{\text{in}} v + n_{\text{out}} v) = 1$. It is the
    harmonic mean of the two variances asked for.
    """
    n, m, _ = _sizes()
    yield _computed().then(lambda v: (n * v + m * v) / 2), 1
    # Halfway between n v = 1 and m v = 1: the harmonic mean of the two variances.
    yield _computed(), 2 / (1 / (1 / n) + 1 / (1 / m))


@step()
def _both() -> Identities:
    r"""The gains sum to 2, and their product is short of 1 by $(\frac{n - m}{n + m})^2$: both are 1 where the layer is
    square, and only there.
    """
    n, m, _ = _sizes()
    forward, backward = n * _variance(), m * _variance()
    yield forward + backward, 2
    yield 1 - forward * backward, ((n - m) / (n + m)) ** 2
    yield forward.subs(m, n) + n, 1 + n


@step()
def _relu() -> Identities:
    """For pre-activations that are as likely as their opposites, ReLU keeps half of the mean square: behind ReLU the
    variance should be twice as large.
    """
    # z and −z are equally likely: half of the mean square comes from each side, and ReLU keeps one.
    z, xp = positive("z"), Symbolic()
    kept = computed(activate, xp, xp.asarray([z, -z]))
    yield kept.then(lambda y: sum(e**2 for e in flat(y)) / 2), (z**2 + (-z) ** 2) / 4


@step()
def _depth() -> Identities:
    r"""Layers of unequal widths stand in a stack in turns, $n \to m \to n$. Such a pair multiplies the mean square of
    the features by $1 - (\frac{n - m}{n + m})^2$, the product of its gains: unless $n = m$ it shrinks with every pair,
    exponentially in depth.
    """
    # Each of m hidden units has the mean square v Σ x², and each output v times the sum over those.
    (a, c), n, m, v, x = index("a c"), dimension("n"), dimension("m"), _variance(), vector("x")
    hidden = v * symbolic_sum(x[a] ** 2, a, n)
    before = symbolic_sum(x[a] ** 2, a, n) / n
    yield v * symbolic_sum(hidden, c, m), (1 - ((n - m) / (n + m)) ** 2) * before


@step(scope=Scope.ENUMERATED, detail="n ≤ 3, any m and any input")
def _formula() -> Identities:
    """The formula gives the mean square of an output over all outcomes of two-valued weights."""
    # Every outcome of weights ±√v, each equally likely, for inputs x: the definition of the variance.
    for n in (1, 2, 3):
        xp = TowerArithmetic()
        x, m = xp.symbols("x", n).value, dimension("m")
        v = xavier_variance(xp, n, m).value[()]
        outputs = [
            sum(sign * sp.sqrt(v) * e for sign, e in zip(signs, x, strict=True)) for signs in product((1, -1), repeat=n)
        ]
        yield sum(y**2 for y in outputs) / len(outputs), 2 * sum(x**2) / (n + m)


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    n_in, n_out = (int(n) for n in rng.integers(1, 1000, size=2))
    return {"n_in": n_in, "n_out": n_out}


EQUATIONS = (
    Equation(
        slug="xavier",
        number="49",
        title="Xavier initialisation",
        statement=r"W \sim \mathcal{N}\left(0, \frac{2}{n_{\text{in}} + n_{\text{out}}}\right)",
        sources=(Source("000", "8.1", 35), Source("001", "8.1", 37)),
        symbols=(
            Symbol("W", r"\mathbb{R}^{n_{\text{in}} \times n_{\text{out}}}", "first weights", "independent, mean zero"),
            Symbol(r"n_{\text{in}}, n_{\text{out}}", r"\mathbb{N}", "the widths of a layer; n and m in the steps"),
            Symbol("v", r"\mathbb{R}_{> 0}", "the variance of a weight"),
        ),
        assumptions=(Assumption("a layer has inputs and outputs", lambda a: a["n_in"] >= 1 and a["n_out"] >= 1),),
        sample=_sample,
        formula=xavier_variance,
        steps=(_forward, _backward, _compromise, _both, _depth, _relu, _formula),
        costs={"parameters": lambda: dimension("n") * dimension("m")},
    ),
)
