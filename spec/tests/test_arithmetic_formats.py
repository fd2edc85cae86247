"""The formats against NumPy's own types, and bfloat16 against its bits."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from veriformer.spec.arithmetic import FORMATS, Format

NATIVE = {"fp64": np.float64, "fp32": np.float32, "fp16": np.float16}
every_double = st.integers(0, 2**64 - 1).map(lambda bits: np.uint64(bits).view(np.float64)) | st.floats(-1e5, 1e5)


def bits_of_bfloat16(x: np.ndarray) -> np.ndarray:
    """Round fp32 to its upper 16 bits, to nearest even, on the bits themselves."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    kept = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16
    return kept.astype(np.uint32).view(np.float32).astype(np.float64)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(((a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))).all())


@pytest.mark.parametrize("name", NATIVE)
@given(x=st.lists(every_double, min_size=1, max_size=20))
def test_rounds_as_numpy_does(name, x):
    x = np.array(x)
    with np.errstate(all="ignore"):
        assert same(FORMATS[name].round(x), x.astype(NATIVE[name]).astype(np.float64))


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
@example(x=1 + 2.0**-11 + 2.0**-40)  # beside a tie, which it would be after a rounding to fp32
@given(x=st.floats(allow_nan=False, allow_infinity=False) | st.floats(-1e5, 1e5) | st.floats(-1e-4, 1e-4))
def test_rounds_to_the_nearest_multiple_of_a_unit_in_the_last_place(name, x):
    form = FORMATS[name]
    place = Fraction(2) ** (max(math.frexp(x)[1] - 1, form.emin) - form.precision + 1)
    nearest = round(Fraction(x) / place) * place  # of two that are as near, the even one
    assert form.round(x) == (nearest if abs(nearest) <= form.max else math.copysign(math.inf, x))


@given(bits=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=20))
def test_rounds_fp32_to_bfloat16_bit_by_bit(bits):
    x = np.array(bits, dtype=np.uint32).view(np.float32)
    x = x[~np.isnan(x)].astype(np.float64)
    assert same(FORMATS["bf16"].round(x), bits_of_bfloat16(x))


@pytest.mark.parametrize("name", NATIVE)
def test_constants_are_those_of_numpy(name):
    form, info = FORMATS[name], np.finfo(NATIVE[name])
    assert form.unit_roundoff == float(info.eps) / 2
    assert (form.max, form.smallest_normal) == (float(info.max), float(info.tiny))
    assert form.smallest_subnormal == float(info.smallest_subnormal)


def test_constants_of_bfloat16():
    form = FORMATS["bf16"]
    assert (form.unit_roundoff, form.max) == (2.0**-8, 255 * 2.0**120)
    assert (form.smallest_normal, form.smallest_subnormal) == (2.0**-126, 2.0**-133)


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_ties_go_to_even_and_overflow_begins_half_an_ulp_above_the_largest(form):
    u, ulp_of_max = form.unit_roundoff, form.max * form.unit_roundoff
    if form.precision < 53:
        assert form.round([1 + u, 1 + 3 * u]).tolist() == [1.0, 1 + 4 * u]
        assert form.round([0.5, 1.5] * np.array(form.smallest_subnormal)).tolist() == [0, 2 * form.smallest_subnormal]
        assert form.round(form.max + 0.4 * ulp_of_max) == form.max
        assert form.round(-form.max - 1.1 * ulp_of_max) == -np.inf
    assert form.round(form.max) == form.max
    assert form.round(form.smallest_subnormal) == form.smallest_subnormal


def test_refuses_formats_that_float64_cannot_hold():
    with pytest.raises(ValueError, match="quad"):
        Format("quad", 113, -16382, 16383)
