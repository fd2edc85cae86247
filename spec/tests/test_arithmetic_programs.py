"""Random programs in every arithmetic, and in PyTorch's real dtypes: whoever computes them stays within the bound."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from veriformer.spec.arithmetic import FORMATS, Exact, Float, RunningError, Symbolic
from veriformer.spec.arithmetic.plain import Plain

DTYPES = {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
ROUNDED = {name: RunningError(form) for name, form in FORMATS.items()}
SHAPE = (3, 6)

STEPS = {
    "add": lambda xp, a, b: a + b,
    "subtract": lambda xp, a, b: a - b,
    "multiply": lambda xp, a, b: a * b,
    "divide": lambda xp, a, b: a / b,
    "square": lambda xp, a, b: a * a,
    "reciprocal": lambda xp, a, b: 1 / a,
    "sqrt": lambda xp, a, b: xp.sqrt(abs(a)),
    "exp": lambda xp, a, b: xp.exp(-abs(a)),
    "log": lambda xp, a, b: xp.log(abs(a)),
    "tanh": lambda xp, a, b: xp.tanh(a),
    "erf": lambda xp, a, b: xp.erf(a),
    "sin": lambda xp, a, b: xp.sin(a),
    "cos": lambda xp, a, b: xp.cos(a),
    "maximum": lambda xp, a, b: xp.maximum(a, b),
    "minimum": lambda xp, a, b: xp.minimum(a, -b),
    "max": lambda xp, a, b: xp.max(a, axis=-1, keepdims=True),
    "sum": lambda xp, a, b: xp.sum(a, axis=-1, keepdims=True),
    "matmul": lambda xp, a, b: a @ xp.swapaxes(b, -1, -2) if a.shape[-1] == b.shape[-1] else a * b,
    "shift": lambda xp, a, b: a - xp.max(a, axis=-1, keepdims=True),
    "where": lambda xp, a, b: xp.where(np.arange(a.shape[-1]) % 2 == 0, a, 0.1),
}
programs = st.lists(
    st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=9
)


def run(xp, program, inputs):
    """Every intermediate result, each step taking the latest result and another that broadcasts with it."""
    pool = [xp.asarray(x) for x in inputs]
    for name, i, j in program:
        a = pool[-1 - i % min(2, len(pool))]
        partners = [b for b in pool if b.shape[-1] in (1, a.shape[-1])]
        pool.append(STEPS[name](xp, a, partners[j % len(partners)]))
    return pool


@st.composite
def inputs(draw, form, wide=True):
    """Two arrays of the format: of order one, or anywhere in its range, with zeros, ones or −∞ among them."""
    reach = st.integers(form.emin - form.precision, form.emax - 3)
    scale = (st.integers(-2, 2) | reach) if wide else st.integers(-2, 2)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    x = np.ldexp(rng.normal(size=(2, *SHAPE)), np.reshape([draw(scale), draw(scale)], (2, 1, 1)))
    x = np.clip(form.round(x), -form.max, form.max)
    return list(np.where(rng.random(x.shape) < 0.1, draw(st.sampled_from([0.0, 1.0, -np.inf] if wide else [0.0])), x))


class Real(Plain):
    """PyTorch's own operations in a real dtype, choosing at random among the correct ways to sum, divide and so on."""

    def __init__(self, name, seed):
        self.form, self.dtype = FORMATS[name], DTYPES[name]
        self.rng = np.random.default_rng(seed)
        self.choices = {"divide": [torch.divide, self.by_reciprocal], "exp": [torch.exp, self.by_powers_of_two]}
        self.choices |= {"sum": [self.at_once, self.shuffled, self.in_pairs], "matmul": [torch.matmul, self.one_by_one]}
        self.choices |= {"max": [lambda x, axis, keepdims: torch.amax(x, dim=axis, keepdim=keepdims)]}

    def convert(self, x):
        return self.form.round(x)

    def finish(self, y):
        return y.to(torch.float64).numpy()

    def compute(self, operation, /, *values, **options):
        ways = self.choices.get(operation) or [getattr(torch, operation)]
        tensors = [torch.from_numpy(np.array(x)).to(self.dtype) for x in values]
        return self.finish(ways[self.rng.integers(len(ways))](*tensors, **options))

    def by_reciprocal(self, a, b):
        # Where 1 / b overflows this way of dividing is not correct.
        return torch.where(b.abs() > 4 / self.form.max, a * (1 / b), a / b)

    def by_powers_of_two(self, x):
        return torch.exp2(x * 1.4426950408889634)

    def at_once(self, x, axis, keepdims):
        return torch.sum(x, dim=axis, keepdim=keepdims)

    def shuffled(self, x, axis, keepdims):
        total = torch.zeros_like(x[..., :1])
        for i in self.rng.permutation(x.shape[-1]):
            total = total + x[..., i : i + 1]
        return total

    def in_pairs(self, x, axis, keepdims):
        while (n := x.shape[-1]) > 1:
            x = torch.cat([x[..., 0 : n - 1 : 2] + x[..., 1:n:2], x[..., n - n % 2 :]], dim=-1)
        return x

    def one_by_one(self, a, b):
        total = a[..., :, :1] * b[..., :1, :]
        for i in range(1, a.shape[-1]):
            total = total + a[..., :, i : i + 1] * b[..., i : i + 1, :]
        return total


def distance(xp, bounded, got):
    """|got − v| in float64, computed by the oracle itself so that no digit is lost."""
    with np.errstate(all="ignore"):
        apart = np.abs(bounded.value - xp.oracle.convert(got))
        return np.where(xp.oracle.tofloat(bounded.value) == got, 0.0, xp.oracle.tofloat(apart))


def assert_within(xp, program, arrays, implementation):
    """The soundness of the bounds, for every intermediate result. Halves are judged while they stay in their range."""
    for bounded, got in zip(run(xp, program, arrays), run(implementation, program, arrays), strict=True):
        error, result = bounded.error, got.value
        assert bounded.error.shape == bounded.magnitude.shape == bounded.shape == result.shape
        assert not np.isnan(error).any()
        if xp.format.max < xp.machine.largest and not np.isfinite(result).all():
            return
        off = distance(xp, bounded, result)
        assert ((off <= error) | (error == np.inf)).all(), f"{program}: off by {off} with bound {error}"


@pytest.mark.whole
@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=300, deadline=None)
@given(data=st.data(), program=programs, seed=st.integers(0, 2**32))
def test_real_arithmetic_stays_within_the_bound(name, data, program, seed):
    assert_within(ROUNDED[name], program, data.draw(inputs(FORMATS[name])), Real(name, seed))


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=100, deadline=None)
@given(data=st.data(), program=programs)
def test_float_arithmetic_stays_within_its_own_bound(name, data, program):
    assert_within(ROUNDED[name], program, data.draw(inputs(FORMATS[name])), Float(FORMATS[name]))


@settings(max_examples=100, deadline=None)
@given(data=st.data(), program=programs, seed=st.integers(0, 2**32))
def test_float_may_serve_as_the_oracle_of_fp64(data, program, seed):
    assert_within(
        RunningError(FORMATS["fp64"], oracle=Float()), program, data.draw(inputs(FORMATS["fp64"])), Real("fp64", seed)
    )


@pytest.mark.whole
@settings(max_examples=100, deadline=None)
@given(data=st.data(), program=programs)
def test_both_oracles_agree_within_the_bound(data, program):
    arrays, xp = data.draw(inputs(FORMATS["fp32"])), ROUNDED["fp32"]
    for bounded, exact in zip(run(xp, program, arrays), run(Exact(), program, arrays), strict=True):
        off = distance(xp, bounded, exact.xp.tofloat(exact.value))
        assert ((off <= bounded.error) | (bounded.error == np.inf)).all()


@settings(max_examples=30, deadline=None)
@given(data=st.data(), program=programs.map(lambda steps: steps[:4]))
def test_symbols_evaluate_to_the_exact_value(data, program):
    arrays = [np.round(x[:1, :2] * 4) / 4 for x in data.draw(inputs(FORMATS["fp64"], wide=False))]
    exact, bounded = Exact(), run(ROUNDED["fp64"], program, arrays)
    # SymPy refuses to compare what is undefined: stop before the first such step.
    undefined = [i for i, x in enumerate(bounded) if not np.isfinite(x.error).all()]
    program = program[: undefined[0] - len(arrays)] if undefined else program
    bounded = bounded[: len(program) + len(arrays)]
    for symbols, x, bound in zip(run(Symbolic(), program, arrays), run(exact, program, arrays), bounded, strict=True):
        for s, v, e in zip(symbols.value.flat, x.value.flat, bound.error.flat, strict=True):
            # Where 53 bits may lose e, 200 bits may lose 2^−147 e: 2^−140 leaves room for 60 digits.
            assert abs(exact.context.mpf(str(s.evalf(60))) - v) <= e * 2.0**-140
