"""The vocabulary means the same in every arithmetic: operators, mixing, moving, and what is refused."""

import subprocess
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from veriformer.spec.arithmetic import FORMATS, Exact, Float, RunningError, Symbolic

ARITHMETICS = {
    "float": Float(),
    "exact": Exact(),
    "symbolic": Symbolic(),
    "rounded-fp64": RunningError(FORMATS["fp64"]),
    "rounded-fp32": RunningError(FORMATS["fp32"]),
}
every_arithmetic = pytest.mark.parametrize("xp", ARITHMETICS.values(), ids=ARITHMETICS)
X = np.arange(12.0).reshape(3, 4) / 4 + 0.25
Y = np.array([2.0, -1.0, 0.5, 4.0])


def floats(x):
    return np.asarray(x.value, dtype=np.float64)


@every_arithmetic
@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: x + y,
        lambda x, y: x - y,
        lambda x, y: x * y,
        lambda x, y: x / y,
        lambda x, y: -x + abs(y),
        lambda x, y: 1 - x,
        lambda x, y: 2 / x,
        lambda x, y: 0.5 * x * 2,
        lambda x, y: 3 + x,
        lambda x, y: np.float32(0.5) * x + np.int64(2),
        lambda x, y: Y * x - Y,
        lambda x, y: x @ Y,
        lambda x, y: np.ones((2, 3)) @ x,
        lambda x, y: x[1:, 2],
        lambda x, y: x[..., None][0],
        lambda x, y: x[2, 3] + y[0],
    ],
)
def test_operators_mix_with_numbers_and_arrays(xp, f):
    x, y = xp.asarray(X), xp.asarray(Y)
    got = f(x, y)
    assert floats(got).tolist() == f(X, Y).tolist()
    assert (got.shape, got.ndim) == (f(X, Y).shape, f(X, Y).ndim)


@every_arithmetic
def test_fractions_are_numbers(xp):
    assert floats(xp.asarray(X) * Fraction(3, 4) + Fraction(1, 2)).tolist() == (X * 0.75 + 0.5).tolist()
    assert floats(xp.asarray([Fraction(1, 4), 2])).tolist() == [0.25, 2.0]


@every_arithmetic
@pytest.mark.parametrize(
    ("ours", "numpys"),
    [
        (lambda xp, x: xp.sum(x), lambda x: x.sum()),
        (lambda xp, x: xp.sum(x, axis=0, keepdims=True), lambda x: x.sum(axis=0, keepdims=True)),
        (lambda xp, x: xp.sum(x, axis=(0, 1)), lambda x: x.sum()),
        (lambda xp, x: xp.max(x, axis=-1), lambda x: x.max(axis=-1)),
        (lambda xp, x: xp.max(x, axis=0, keepdims=True), lambda x: x.max(axis=0, keepdims=True)),
        (lambda xp, x: xp.maximum(x, 1), lambda x: np.maximum(x, 1)),
        (lambda xp, x: xp.minimum(1.5, x), lambda x: np.minimum(1.5, x)),
        (lambda xp, x: xp.where(X > 1, x, -1), lambda x: np.where(X > 1, x, -1)),
        (lambda xp, x: xp.matmul(x, xp.swapaxes(x, 0, 1)), lambda x: x @ x.T),
        (lambda xp, x: xp.reshape(x, (2, -1)), lambda x: x.reshape(2, -1)),
        (lambda xp, x: xp.broadcast_to(x, (2, 3, 4)), lambda x: np.broadcast_to(x, (2, 3, 4))),
        (lambda xp, x: xp.concat([x, x[:1]], axis=0), lambda x: np.concatenate([x, x[:1]])),
        (lambda xp, x: xp.stack([x, x], axis=1), lambda x: np.stack([x, x], axis=1)),
        (lambda xp, x: xp.repeat(x, 2, axis=1), lambda x: np.repeat(x, 2, axis=1)),
        (lambda xp, x: xp.take_along(x, [[2], [0], [3]], 1), lambda x: x[[0, 1, 2], [2, 0, 3]][:, None]),
        (lambda xp, x: xp.sqrt(x * x), lambda x: x),
        (lambda xp, x: xp.sum(x[:, :0], axis=1), lambda x: np.zeros(3)),
        (lambda xp, x: xp.max(x[:, :0], axis=1), lambda x: np.full(3, -np.inf)),
        (lambda xp, x: x[:, :0] @ x[:0], lambda x: np.zeros((3, 4))),
    ],
)
def test_functions_have_numpys_meaning(xp, ours, numpys):
    got = ours(xp, xp.asarray(X))
    assert floats(got).tolist() == numpys(X).tolist()
    assert got.shape == np.shape(numpys(X))


@every_arithmetic
def test_where_does_not_look_at_what_it_hides(xp):
    x = xp.asarray(np.array([1.0, np.nan, np.inf]))
    y = xp.sum(xp.where([True, False, False], x, 0) * 2)
    assert float(y.value) == 2.0
    if isinstance(xp, RunningError):
        assert y.error < 1e-6


@every_arithmetic
def test_arrays_are_copies_of_what_they_were_given(xp):
    x = np.array([1.0, 2.0])
    y = xp.asarray(x)
    x[0] = 5.0
    assert floats(y).tolist() == [1.0, 2.0]


@every_arithmetic
def test_exp_of_minus_infinity_is_zero(xp):
    x = xp.asarray([1.0, -np.inf]) - 1
    y = xp.exp(x - xp.max(x, axis=0, keepdims=True))
    assert floats(y / xp.sum(y)).tolist() == [1.0, 0.0]


@every_arithmetic
def test_the_logarithm_of_zero_is_minus_infinity(xp):
    assert floats(xp.maximum(xp.log(xp.asarray([0.0, 1.0])), -3)).tolist() == [-3, 0]


@pytest.mark.parametrize("xp", [ARITHMETICS["exact"], ARITHMETICS["float"], ARITHMETICS["rounded-fp32"]], ids=repr)
def test_poles_are_infinite_and_nonsense_is_nan(xp):
    with np.errstate(invalid="ignore"):
        x = xp.asarray([0.0, -1.0, np.nan])
        assert np.isnan(floats(xp.sqrt(x))).tolist() == [False, True, True]
        assert floats(xp.log(x))[0] == -np.inf
        assert np.isnan(floats(xp.log(x))).tolist() == [False, True, True]
        assert floats(xp.asarray([1.0, -2.0]) / 0).tolist() == [np.inf, -np.inf]
        assert np.isnan(floats(x[:1] / 0)).all()


def test_exact_is_exact_far_apart_and_in_sums_that_cancel():
    xp = Exact()
    assert floats(xp.sum(xp.asarray([1e300, 1e-300, -1e300]))).tolist() == 1e-300
    huge = xp.exp(xp.asarray([3e4, -3e4]))
    assert xp.sum(huge * xp.exp(xp.asarray([-3e4, 3e4]))).value - 2 == 0
    assert float((xp.sum(huge) / huge[0]).value) == 1.0
    assert floats(xp.exp(xp.asarray([1e300, -1e300]))).tolist() == [np.inf, 0.0]


def test_exact_keeps_its_precision_and_rounds_to_nearest_float():
    xp, tiny = Exact(), 2.0**-150
    x = xp.asarray([[1.0, tiny]])
    assert floats(xp.sum(x) - 1) == tiny
    assert floats(x @ np.ones((2, 1)) - 1) == tiny
    y = xp.asarray([2.0**-54, 2.0**-53 + 2.0**-100]) + 1
    assert xp.tofloat(y.value).tolist() == [1.0, 1 + 2.0**-52]


def test_float_rounds_every_result_and_accumulates_wide():
    form = FORMATS["bf16"]
    xp, u = Float(form), form.unit_roundoff
    assert floats(xp.asarray(1) + u) == 1
    assert floats(xp.exp(xp.asarray(1))) == form.round(np.e)
    x = xp.asarray([1.0] + [u] * 6)
    assert floats(xp.sum(x)) == floats(x @ np.ones(7)) == 1 + 6 * u


def test_the_precision_of_mpmath_is_left_alone():
    before = (mpmath.mp.prec, mpmath.mp.dps)
    third = Exact(400).asarray(1) / 3
    assert (mpmath.mp.prec, mpmath.mp.dps) == before
    assert third.value.item() != mpmath.mpf(1) / 3


def test_a_free_maximum_is_any_number():
    import sympy

    xp = Symbolic(free_max=True)
    x = xp.asarray(sympy.symbols("a b", real=True))
    m = xp.max(x, axis=0, keepdims=True)
    assert isinstance(m.value[0], sympy.Dummy)
    assert m.shape == (1,)
    e = xp.exp(x - m)
    a, b = sympy.symbols("a b", real=True)
    assert sympy.simplify((e / xp.sum(e)).value[0] - sympy.exp(a) / (sympy.exp(a) + sympy.exp(b))) == 0


def test_symbols_are_numbers_of_the_symbolic_arithmetic():
    import sympy

    eps = sympy.Symbol("epsilon")
    xp = Symbolic()
    assert (xp.asarray([1, 2]) * eps + eps).value.tolist() == [2 * eps, 3 * eps]
    assert (eps / xp.asarray(0.25)).value.item() == 4 * eps
    assert isinstance(xp.sum(xp.asarray([])).value.item(), sympy.Integer)


def test_arrays_of_another_arithmetic_are_refused():
    with pytest.raises(TypeError, match=r"Float\(fp64\).*Exact\(200\)"):
        Float().asarray(1.0) + Exact().asarray(1.0)
    with pytest.raises(TypeError, match="RunningError"):
        RunningError(FORMATS["fp32"]).asarray(Float().asarray(1.0))
    with pytest.raises(TypeError, match="RunningError"):
        RunningError(FORMATS["fp32"]).asarray(RunningError(FORMATS["fp32"]).asarray(1.0))
    with pytest.raises(ValueError, match="oracle"):
        RunningError(FORMATS["fp32"], oracle=Float(FORMATS["fp32"]))


def test_the_package_opens_without_sympy_and_never_needs_torch():
    code = "import sys, veriformer.spec.arithmetic; print([m for m in ('sympy', 'torch') if m in sys.modules])"
    environment = {"PYTHONPATH": ":".join(p for p in sys.path if p)}
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment).stdout == "[]\n"
    )
