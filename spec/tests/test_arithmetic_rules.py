"""Each rule by itself: attained by the worst case, sound and sharp in what it carries, right at infinity."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from veriformer.spec.arithmetic import FORMATS, Float, Format, RunningError, RunningErrorArray
from veriformer.spec.arithmetic.running_error import ULPS

R64, R32, RB16, R16 = (RunningError(FORMATS[name]) for name in ("fp64", "fp32", "bf16", "fp16"))
U = FORMATS["fp32"].unit_roundoff
ETA = FORMATS["fp32"].smallest_subnormal


def used(bounded, got):
    """The share of the bound that a result uses up: at most 1 if the rule is sound, near 1 if it cannot be smaller."""
    return float(np.max(np.abs(np.asarray(got, dtype=np.float64) - bounded.value) / bounded.error))


def single(x):
    return np.asarray(x, dtype=np.float32)


# --- what an operation adds -------------------------------------------------------------------------------------------


def test_adding_may_lose_half_an_ulp():
    assert 0.99 < used(R32.asarray(1) + R32.asarray(U), single(1) + single(U)) <= 1
    assert 0.99 < used(R32.asarray(-1) - R32.asarray(U), single(-1) - single(U)) <= 1


def test_multiplying_may_lose_half_an_ulp():
    x = 1 + 2.0**-12
    assert 0.99 < used(R32.asarray(x) * R32.asarray(x), single(x) * single(x)) <= 1


def test_the_oracle_may_round_the_other_way():
    u = FORMATS["fp64"].unit_roundoff
    xp = RunningError(FORMATS["fp64"], oracle=Float())
    total = xp.asarray(1) + u
    assert total.value == 1
    assert 2 * u <= total.error < 2.001 * u


def test_multiplying_may_lose_half_a_subnormal():
    x = 2.0**-75
    assert single(x) * single(x) == 0
    assert 0.99 < used(R32.asarray(x) * R32.asarray(x), 0) <= 1


@pytest.mark.parametrize("n", [2, 3, 100, 1000])
def test_a_sum_in_a_bad_order_loses_half_an_ulp_per_term(n):
    x = single([1] + [U] * (n - 1))
    total = np.add.accumulate(x)[-1]
    assert total == 1
    assert 0.99 < used(R32.sum(R32.asarray(x)), total) <= 1


@pytest.mark.parametrize("axis", [0, -1])
def test_running_sums_lose_half_an_ulp_for_each_term_so_far(axis):
    x = single([[1] + [U] * 99, [2] + [2 * U] * 99])
    x = x if axis else x.T
    sums = R32.cumsum(R32.asarray(x), axis=axis)
    totals = np.add.accumulate(x, axis=axis)
    lost = np.abs(totals - sums.value).take(range(1, 100), axis)
    shares = lost / sums.error.take(range(1, 100), axis)
    assert (shares > 0.99).all()
    assert (shares <= 1).all()
    assert (sums.error.take(0, axis) == 0).all()


def test_running_sums_carry_the_errors_of_their_terms_and_may_leave_the_range():
    doubtful = RunningErrorArray(R32, np.ones(3), np.asarray([0.5, 0.0, 0.25]), np.ones(3))
    errors = R32.cumsum(doubtful).error
    carried = np.asarray([0.5, 0.5, 0.75])
    assert (carried <= errors).all()
    assert (errors <= 1.00001 * carried).all()
    top = FORMATS["fp32"].max
    there_and_back = R32.cumsum(R32.asarray(np.asarray([0.75, 0.75, -0.75]) * top))
    assert np.isfinite(there_and_back.error[0])
    assert np.isinf(there_and_back.error[1:]).all()


@pytest.mark.parametrize("n", [20, 1000])
def test_an_inner_product_loses_as_much_and_a_rounding_of_the_products(n):
    a, b = single([[1] + [U] * (n - 1)]), single(np.ones((n, 1)))
    assert (n - 1.1) / n < used(R32.asarray(a) @ R32.asarray(b), 1) <= 1


def test_the_bound_of_a_long_sum_in_bfloat16_exists():
    x = RB16.asarray(np.ones(4000))
    assert used(RB16.sum(x), 256) <= 1
    assert RB16.sum(x).error < 4000 * 4000 * 2.0**-8 * 1.001


def test_dividing_may_be_multiplying_by_the_reciprocal():
    rng = np.random.default_rng(0)
    a, b = single(rng.uniform(1, 2, (2, 100_000)))
    assert 0.3 < used(R32.asarray(a) / R32.asarray(b), a * (1 / b)) <= 1


def test_a_reciprocal_may_underflow():
    a, b = np.float16(60000), np.float16(60000) - 32 * np.arange(100, dtype=np.float16)
    assert 0.1 < used(R16.asarray(a) / R16.asarray(b), a * (1 / b)) <= 1


def test_exp_may_be_a_power_of_two():
    x = single(np.random.default_rng(0).uniform(-80, 0, 100_000))
    assert 0.4 < used(R32.exp(R32.asarray(x)), np.exp2(x * single(1.4426950408889634))) <= 1


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "sin", "cos", "sqrt"])
@pytest.mark.parametrize("xp", [R32, RB16, R16], ids=lambda xp: xp.format.name)
def test_the_functions_of_pytorch_keep_to_the_table(xp, name):
    rng = np.random.default_rng(0)
    x = np.ldexp(rng.normal(size=100_000), rng.integers(-30, 6, 100_000))
    x = xp.format.round(np.abs(x) if name in ("log", "sqrt") else x)
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[xp.format.name]
    got = getattr(torch, name)(torch.from_numpy(x).to(dtype)).to(torch.float64).numpy()
    fits = np.isfinite(got) & (np.abs(got) > 0)
    assert 0.04 < used(getattr(xp, name)(xp.asarray(x[fits])), got[fits]) <= 1


def test_underflow_of_exp_is_granted():
    x = single([-103.5, -103.9, -104.0, -150.0])
    bounded = R32.exp(R32.asarray(x))
    assert used(bounded, np.exp(x)) <= 1
    lowered = np.float32(8) * np.exp(x - np.log(np.float32(8)))  # as by a maximum that is taken for more than it is
    assert used(bounded, lowered) <= 1
    assert bounded.error.max() <= 20 * ETA


def test_a_power_of_e_near_the_subnormal_numbers_may_be_zero_and_no_other_one():
    lowest, normal = R32.exp(R32.asarray(single([-86.99, -91.0, -100.0]))), R32.exp(R32.asarray(single([-86.9, -80.0])))
    assert 0.5 < used(lowest, 0) <= 1
    assert (normal.error < 1e-4 * normal.value).all()
    assert used(R64.exp(uncertain(np.float64(-705.6), 0.6)), np.float64(0)) <= 1


@pytest.mark.parametrize("of", [lambda x: x * 1e-4, lambda x: x / 3e4, lambda x: x * x])
def test_what_vanished_in_the_oracle_and_in_its_bound_as_well_may_be_some(of):
    xp = RunningError(FORMATS["fp64"], oracle=Float())
    tiny = xp.exp(xp.asarray(-800.0))
    assert tiny.value == 0 < of(tiny).error
    assert of(xp.asarray(0.0)).error == 0


def test_functions_underflow_too():
    x = np.arange(1.0, 100.0) * 2.0**-1074
    bounded = R64.erf(R64.asarray(x))
    off = abs(bounded.value - R64.oracle.convert(torch.erf(torch.from_numpy(x)).numpy()))
    assert off.max() > 0.4 * 2.0**-1074
    assert (off <= bounded.error).all()


# --- what an operation carries ----------------------------------------------------------------------------------------


def uncertain(value, error):
    value = R64.oracle.convert(value)
    return RunningErrorArray(R64, value, np.asarray(error, dtype=np.float64), R64.oracle.magnitude(value))


CARRIED = {
    "add": (lambda xp, a, b: a + b, True),
    "subtract": (lambda xp, a, b: a - b, True),
    "multiply": (lambda xp, a, b: a * b, True),
    "divide": (lambda xp, a, b: a / b, True),
    "matmul": (lambda xp, a, b: xp.reshape(a, (1, 1)) @ xp.reshape(b, (1, 1)), True),
    "sum": (lambda xp, a, b: xp.sum(xp.stack([a, b]), axis=0), True),
    "max": (lambda xp, a, b: xp.max(xp.stack([a, b]), axis=0), False),
    "maximum": (lambda xp, a, b: xp.maximum(a, b), False),
    "minimum": (lambda xp, a, b: xp.minimum(a, b), False),
    "negative": (lambda xp, a, b: -a, True),
    "absolute": (lambda xp, a, b: abs(a), False),
    "sqrt": (lambda xp, a, b: xp.sqrt(a * a), False),
    "root": (lambda xp, a, b: xp.sqrt(abs(a)), False),
    "exp": (lambda xp, a, b: xp.exp(a), True),
    "log": (lambda xp, a, b: xp.log(abs(a)), False),
    "tanh": (lambda xp, a, b: xp.tanh(a), False),
    "erf": (lambda xp, a, b: xp.erf(a), False),
    "sin": (lambda xp, a, b: xp.sin(a), False),
    "cos": (lambda xp, a, b: xp.cos(a), False),
}
CORNERS = [(s, t) for s in (-1.0, -0.5, 0.0, 1.0) for t in (-1.0, 1.0)]
numbers, relative = st.floats(-8, 8, allow_subnormal=False), st.sampled_from([0.0, 1e-9, 1e-4, 0.3, 0.99])


def moved(f, a, ea, b, eb):
    """The bound, and how far the exact result moves when the operands move within their errors."""
    bounded = f(R64, uncertain(a, ea), uncertain(b, eb))
    number = R64.oracle.context.mpf
    ends = [f(R64.oracle, *map(R64.oracle.asarray, (a + number(s * ea), b + number(t * eb)))) for s, t in CORNERS]
    return float(bounded.error.item()), [float(abs(end.value.item() - bounded.value.item())) for end in ends]


@pytest.mark.parametrize("name", CARRIED)
@settings(max_examples=80, deadline=None)
@given(a=numbers, b=numbers, ra=relative, rb=relative)
def test_errors_of_the_operands_are_carried_in_full(name, a, b, ra, rb):
    bound, distances = moved(CARRIED[name][0], a, abs(a) * ra, b, abs(b) * rb)
    assert all(not d > bound for d in distances)


@pytest.mark.parametrize("name", [name for name, (_, sharp) in CARRIED.items() if sharp])
@pytest.mark.parametrize(("a", "b"), [(0.5, 2.0), (3.0, -0.25), (-2.0, -7.0)])
def test_the_carried_error_cannot_be_smaller(name, a, b):
    f = CARRIED[name][0]
    corners = [moved(f, a, 1e-9, b, eb) for eb in (1e-9, 0.0)]
    assert max(max(distances) / bound for bound, distances in corners) > 0.99


@pytest.mark.parametrize(("name", "a"), [("log", 3.0), ("root", 3.0), ("tanh", 0.0), ("erf", 0.0), ("sin", 0.0)])
def test_the_conditioning_of_functions_cannot_be_smaller(name, a):
    bound, distances = moved(CARRIED[name][0], a, 1e-9, 1.0, 0.0)
    assert max(distances) / bound > 0.99


def test_errors_are_rounded_like_everything_else():
    u = FORMATS["bf16"].unit_roundoff
    a, b = (RunningErrorArray(RB16, np.array(0.0), np.array(e), np.array(0.0)) for e in (1 + 2 * u, u))
    total = RB16.format.round((1 + 2 * u) + u)
    assert total > 1 + 3 * u
    assert total <= (a + b).error <= total * (1 + u)


def test_subnormal_numbers_between_those_of_float64_are_not_mistaken_for_them():
    eta = 2.0**-1074
    b = R64.oracle.context.mpf(2.6) * eta
    bound, distances = moved(CARRIED["divide"][0], 5 * eta, 0.0, b, eta)
    assert 1 < max(distances) <= bound < 4


def test_division_by_what_may_be_zero_has_no_bound():
    assert (R64.asarray(1) / uncertain(1.0, 1.0)).error == np.inf
    assert R64.log(uncertain(1.0, 1.0)).error == np.inf
    assert R64.sqrt(uncertain(0.0, 1e-10)).error < 1.01e-5


# --- zero, infinity, overflow -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("xp", [R64, R32, RB16, R16], ids=lambda xp: xp.format.name)
def test_infinite_inputs_are_exact(xp):
    x = xp.asarray([-np.inf, 1.0]) * 0.5
    tenth = xp.asarray(1) / 10
    for y in (x - tenth, x + tenth, x / tenth, xp.maximum(x, -np.inf), x * tenth):
        assert y.value[0] == -np.inf
        assert y.error[0] == 0
        assert np.isfinite(y.error[1])
    assert (-x - tenth).error[0] == 0
    assert xp.sum(x - tenth).error == 0
    assert (xp.exp(x).value[0], xp.exp(x).error[0]) == (0, 0)
    assert xp.max(xp.asarray([-np.inf, -np.inf])).error == 0
    assert xp.max(x).error == x.error[1]
    assert xp.max(xp.asarray([])).error == 0
    assert xp.judgeable(x - tenth)[1][0] == 0


@pytest.mark.parametrize("xp", [R64, R32], ids=lambda xp: xp.format.name)
def test_what_infinity_leaves_undefined_has_no_bound(xp):
    x = xp.asarray([-np.inf])
    for y in (x - x, x * 0, x / x, xp.matmul(x, xp.asarray([0.0])), xp.tanh(x - x)):
        assert y.error == np.inf
    certain = xp.asarray([1.0]) / 10 - 0.1
    assert (x * certain).error == np.inf


def test_exact_zeros_stay_exact():
    zero = R32.asarray(0.0) * (R32.asarray(1) / 3)
    assert (zero.value, zero.error) == (0, 0)
    assert (R32.sqrt(zero).error, (zero / 3).error, (zero + zero).error) == (0, 0, 0)
    assert R32.judgeable(zero)[1] == 0


def test_numbers_that_the_format_holds_are_exact_and_others_are_rounded_once():
    assert [R32.asarray(x).error for x in (1, -0.5, 2**20, 1e3)] == [0, 0, 0, 0]
    assert abs(1e-5 - float(single(1e-5))) < U * 1e-5 < R32.asarray(1e-5).error < 1.001 * U * 1e-5
    assert 0 < RB16.asarray(257).error <= 257 * 2.0**-8 * (1 + 1e-8)
    assert R64.asarray(1e-5).error == 0
    assert R64.asarray(np.nan).error == np.inf


def test_an_intermediate_beyond_the_range_has_no_bound():
    big = R32.asarray(3e38)
    assert (big + big).error == np.inf
    assert np.isfinite((big + 1).error)
    assert R32.sum(R32.asarray([3e38, 3e38, -3e38])).error == np.inf
    assert (R32.asarray([[3e38, 3e38]]) @ R32.asarray([[1.0], [-1.0]])).error == np.inf
    assert np.isfinite((R32.asarray([[1e38, 1e38]]) @ R32.asarray([[1.0], [-1.0]])).error).all()
    assert np.isfinite(R32.sum(R32.asarray([1e38, 1e38, -1e38])).error)
    assert R32.exp(R32.asarray(89.0)).error == np.inf
    assert R32.asarray(1e39).error == np.inf
    assert R32.tanh(big + big).error == np.inf


def test_halves_work_in_the_range_of_single_and_end_in_their_own():
    square = R16.asarray(6e4) * R16.asarray(6e4)
    assert np.isfinite(square.error)
    assert R16.judgeable(square)[1] == np.inf
    assert np.isfinite(R16.judgeable(square / 6e4)[1])
    assert (square * square * square * square * 10).error == np.inf


def test_judging_grants_the_final_rounding():
    x = R32.asarray(2.0**-13) - R32.asarray(2.0**-13) + 1
    value, bound = R32.judgeable(x)
    assert value == 1
    assert 1.99 * U < bound < 2.01 * U
    assert R32.judgeable(R32.asarray(float(FORMATS["fp32"].max)))[1] == np.inf


# --- wider machines ---------------------------------------------------------------------------------------------------


def test_a_coarser_table_widens_the_function_and_nothing_else():
    coarse = RunningError(FORMATS["fp32"], ulps=ULPS | {"tanh": 4096.0})
    assert coarse.tanh(coarse.asarray(0.5)).error > 1000 * R32.tanh(R32.asarray(0.5)).error
    assert coarse.exp(coarse.asarray(0.5)).error == R32.exp(R32.asarray(0.5)).error


def test_a_format_of_ones_own_is_a_machine_too():
    tensor_float = RunningError(Format("tf32", 11, -126, 127))
    x = tensor_float.asarray(1 + 2.0**-10)
    assert x.error == 0
    assert used(x * x, np.float32(1)) > 1
    assert used(x * x, np.float32(1 + 2.0**-9)) <= 1


@pytest.fixture
def flushed():
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush subnormal numbers")
    yield
    torch.set_flush_denormal(False)


@pytest.mark.usefixtures("flushed")
def test_flushing_is_granted_where_asked_for():
    xp = RunningError(FORMATS["fp32"], flush=True)
    x, y = np.array([1.5 * 2.0**-126, 2.0**-149, 2.0**-140]), np.array([-(2.0**-126), 1.0, 2.0**100])
    a, b = (torch.from_numpy(v).to(torch.float32) for v in (x, y))
    for f in (lambda p, q: p + q, lambda p, q: p * q, lambda p, q: p / q, lambda p, q: (p[None] @ q[:, None])[0]):
        got, bounded, strict = f(a, b).double().numpy(), f(*map(xp.asarray, (x, y))), f(*map(R32.asarray, (x, y)))
        assert used(bounded, got) <= 1
        assert (bounded.error > 1e6 * strict.error).any()
