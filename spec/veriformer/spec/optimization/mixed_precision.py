"""Mixed precision: what half precision loses, and how scaling the loss brings gradients back (document 000, 8.2)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from veriformer.spec.arithmetic import FORMATS, Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, index, positive, real, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.published import holds

_FP16, _FP32 = FORMATS["fp16"], FORMATS["fp32"]


def unscale(xp: Any, scaled: Sequence[Any], scale: Any) -> list[Any]:
    """∇L from the gradients of s · L, for each parameter: division by the scale s ≠ 0."""
    return [xp.asarray(g) / scale for g in scaled]


def _half(x: float) -> float:
    return float(_FP16.round(x))


def _exactly(x: float) -> Any:
    return sp.Rational(Fraction(float(x)))


def _sum_of_ones(count: int) -> Any:
    """Return the sum of this many ones, added up in fp16."""
    total = 0.0
    for _ in range(count):
        total = _half(total + 1)
    return sp.Integer(int(total))


@step(detail="squared errors of one parameter")
def _scaled_back() -> Identities:
    r"""$\nabla (s \mathcal{L}) / s = \nabla \mathcal{L}$: a scaled loss, and gradients divided by the scale, change
    nothing.
    """
    n, i, theta, s = dimension("n"), index("i"), real("theta"), positive("s")
    error = vector("x")[i] * theta - vector("y")[i]
    xp = Symbolic()
    (g,) = unscale(xp, [xp.asarray(sp.diff(symbolic_sum(s * error**2, i, n), theta))], s)
    yield g.value[()], symbolic_sum(2 * error * vector("x")[i], i, n)


@step()
def _any_length() -> Identities:
    """The formula computes the gradients from scaled gradients, for every n."""
    xp, n, i, s = AnyLength(), dimension("n"), index("i"), positive("s")
    found = computed(unscale, xp, [xp.array("g", n) * s], s)
    yield found.then(lambda parts: entry(i)(parts[0])), vector("g")[i]


def _halves() -> Any:
    """Every positive finite number of fp16: 2^10 significands in each of 31 binades, the subnormal one among them."""
    bits = np.arange(1, 0x7C00, dtype=np.uint16)
    return bits.view(np.float16).astype(np.float64)


@step(scope=Scope.NUMERIC, detail="all 31743 positive numbers of fp16, scales 2, 2¹⁰ and 2²⁴")
def _powers_of_two() -> Identities:
    """Nor does a power of two round: every number of fp16, times a power of two that leaves it in range, is a number of
    fp16. A scale of three is not so harmless.
    """
    x = _halves()
    for k in (1, 10, 24):
        inside = x[x * 2.0**k <= _FP16.max]
        yield holds(bool((_FP16.round(inside * 2.0**k) == inside * 2.0**k).all()))
    # Not so for a scale of three: the significand of 1 + 2⁻¹⁰ grows by two bits.
    yield holds(_half(3 * (1 + 2.0**-10)) != 3 * (1 + 2.0**-10))


@step(scope=Scope.NUMERIC, detail="these two numbers")
def _underflow() -> Identities:
    """fp16 ends at $2^{-24}$: gradients of $10^{-8}$ and of $2^{-26}$ become zero, and the parameter stops learning.
    Scaled by $2^{10}$ the latter comes through exactly.
    """
    yield computed(_exactly, _FP16.smallest_subnormal), sp.Integer(2) ** -24
    yield holds(_half(1e-8) == 0 and _half(2.0**-26) == 0)
    yield holds(_half(2.0**-26 * 2.0**10) / 2.0**10 == 2.0**-26)


@step(scope=Scope.NUMERIC, detail="the ends of the format")
def _overflow() -> Identities:
    """At the other end 65504 is the largest number, and $2^{16}$ is infinite: a scale too large shows as an infinite
    gradient, whose step is to be left out.
    """
    yield computed(_exactly, _FP16.max), sp.Integer(65504)
    yield holds(_half(2.0**16) == np.inf and _half(65519.0) == 65504)


@step(scope=Scope.NUMERIC, detail="this walk, each sum rounded to nearest")
def _stagnation() -> Identities:
    r"""A change below $u |\theta|$ is rounded away: ten thousand steps of $10^{-4}$ leave a parameter of 1 in fp16
    where it is, and bring one in fp32 to 2. So parameters, and gradients that are added up, are kept in fp32.
    """
    # Ten thousand steps of 10⁻⁴ from 1: in fp16 each is rounded away, in fp32 they add up.
    half, single = 1.0, 1.0
    for _ in range(10_000):
        half, single = _half(half + 1e-4), float(_FP32.round(single + 1e-4))
    yield holds(half == 1)
    yield holds(abs(single - 2) < 1e-3)


@step(scope=Scope.NUMERIC, detail="4096 ones, one after the other")
def _long_sums() -> Identities:
    """A sum of ones in fp16 stops at $2048 = 1 / u$, where the next number is 2 away."""
    yield computed(_sum_of_ones, 4096), sp.Integer(2048)


@step(scope=Scope.NUMERIC, detail="these two numbers")
def _adam_in_half() -> Identities:
    r"""Adam cannot run in fp16: $\epsilon = 10^{-8}$ is zero there, and so is the square of a gradient of $10^{-4}$, so
    that (9) divides by zero.
    """
    yield holds(_half(1e-8) == 0)
    yield holds(_half(_half(1e-4) ** 2) == 0)


EQUATIONS = (
    Equation(
        slug="mixed-precision",
        number=None,
        title="Mixed precision and loss scaling",
        statement=r"\text{FP16 Forward, FP32 Gradients: half precision for speed, full precision for numerical "
        r"stability}",
        sources=(Source("000", "8.2", 42), Source("001", "8.2", 45)),
        symbols=(
            Symbol("s", r"\mathbb{R}_{> 0}", "the scale of the loss", "a power of two as a rule"),
            Symbol("u", r"\mathbb{R}_{> 0}", r"unit roundoff: $2^{-11}$ for fp16, $2^{-24}$ for fp32"),
        ),
        assumptions=(Assumption("the scale is not zero", lambda a: a["scale"] != 0),),
        sample=lambda rng: {
            "scaled": [rng.normal(size=(2, 3)), rng.normal(size=4)],
            "scale": float(2.0 ** rng.integers(0, 16)),
        },
        formula=unscale,
        steps=(
            _scaled_back,
            _any_length,
            _powers_of_two,
            _underflow,
            _overflow,
            _stagnation,
            _long_sums,
            _adam_in_half,
        ),
    ),
)
