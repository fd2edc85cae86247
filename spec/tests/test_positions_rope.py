"""RoPE at its edges, and what its bounds tell apart."""

import numpy as np
import pytest

from tests.values import EXACT, XP, floats
from veriformer.spec.arithmetic import FORMATS, Float, RunningError
from veriformer.spec.positions.angles import cosines_and_sines
from veriformer.spec.positions.rope import rope

RNG = np.random.default_rng(0)


def as_rows(y):
    return floats(y).reshape(-1, y.shape[-1]).tolist()


@pytest.mark.parametrize("shape", [(3,), (2, 1, 3), (1, 4, 1), (2, 4, 3), (1, 1, 1)])
def test_positions_align_with_all_axes_but_the_last(shape):
    x, positions = EXACT.asarray(RNG.normal(size=(2, 4, 3, 6))), RNG.integers(-9, 99, size=shape)
    every = np.broadcast_to(positions, x.shape[:-1])
    assert as_rows(rope(EXACT, x, positions)) == as_rows(rope(EXACT, x, every))
    assert as_rows(rope(EXACT, x, EXACT.asarray(positions.astype(float)))) == as_rows(rope(EXACT, x, every))


def test_one_pair_has_nothing_to_scale_by_ntk():
    x = EXACT.asarray(RNG.normal(size=(3, 2)))
    assert as_rows(rope(EXACT, x, np.arange(3), scaling=("ntk", 8.0))) == as_rows(rope(EXACT, x, np.arange(3)))


def test_unknown_pairing_is_refused():
    with pytest.raises(ValueError, match="pairing"):
        rope(XP, XP.asarray([[1.0, 2.0]]), np.arange(1), pairing="neox")


def test_nothing_to_turn():
    assert rope(XP, XP.asarray(np.zeros((2, 0, 4))), np.arange(0)).shape == (2, 0, 4)
    assert (floats(rope(XP, XP.asarray(RNG.normal(size=(1, 4))), np.zeros(1))).shape) == (1, 4)


def as_commonly_computed(x, positions, dtype=np.float32, base=10000.0):
    """Interleaved RoPE with angles in fp32, and all else in the dtype of x."""
    d = x.shape[-1]
    inverse = np.float32(1) / np.float32(base) ** (np.arange(0, d, 2, dtype=np.float32) / np.float32(d))
    angles = positions.astype(np.float32)[:, None] * inverse
    cos, sin = np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape)


POSITIONS = np.array([0, 1, 2, 255, 257, 4095, 30001, 100000])


@pytest.mark.parametrize(("name", "dtype"), [("fp32", np.float32), ("fp16", np.float16)])
def test_bounds_admit_angles_in_single_precision(name, dtype):
    # So many rows that some of them come as near to the bound as the rounding of cosines and sines has it.
    x = np.random.default_rng(1).normal(size=(500, len(POSITIONS), 16)).astype(dtype)
    xp = RunningError(FORMATS[name])
    exact, bound = xp.judgeable(rope(xp, xp.asarray(x.astype(np.float64)), POSITIONS))
    got = as_commonly_computed(x, POSITIONS, dtype).astype(np.float64)
    assert (abs(got - exact) <= bound).all()


@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_bounds_refuse_positions_in_half_precision(name):
    # 257 is 256 in bf16, and 4095 is 4096 in fp16: two positions have one angle.
    xp, place = RunningError(FORMATS[name]), {"bf16": 257, "fp16": 4095}[name]
    x = np.ones((1, 8))
    exact, bound = xp.judgeable(rope(xp, xp.asarray(x), np.array([place])))
    wrong = floats(rope(XP, XP.asarray(x), FORMATS[name].round(np.array([place]))))
    assert (abs(wrong - exact) > 10 * bound).any()


@pytest.mark.parametrize("name", FORMATS)
def test_bounds_refuse_another_base_scaling_and_pairing(name):
    xp, x = RunningError(FORMATS[name]), RNG.normal(size=(6, 8))
    x = FORMATS[name].round(x)
    for wrong in ({"base": 500.0}, {"scaling": ("linear", 2.0)}, {"scaling": ("ntk", 2.0)}, {"pairing": "half"}):
        exact, bound = xp.judgeable(rope(xp, xp.asarray(x), np.arange(6)))
        other = floats(rope(XP, XP.asarray(x), np.arange(6), **wrong))
        assert (abs(other - exact) > bound).any()


def test_halves_form_angles_in_single_precision():
    cos, _ = cosines_and_sines(Float(FORMATS["bf16"]), np.array([256, 257]), 4)
    exact, _ = cosines_and_sines(XP, np.array([256, 257]), 4)
    assert (cos.value == FORMATS["bf16"].round(exact.value)).all()
    assert cos.value[0, 0] != cos.value[1, 0]


def test_errors_of_angles_grow_with_the_position():
    xp = RunningError(FORMATS["fp64"])
    cos, _ = cosines_and_sines(xp, np.array([1, 1000, 100000]), 4)
    assert (np.diff(cos.error, axis=0) > 0).all()
    assert cos.error.max() < 1e5 * 2.0**-48
