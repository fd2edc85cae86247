"""Temperature, calibration, filters and beam search at their edges, the latter three by a second route."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tests.values import EXACT, XP, floats
from veriformer.spec.arithmetic import FORMATS, RunningError
from veriformer.spec.generation.beam_search import beam_search
from veriformer.spec.generation.expected_calibration_error import expected_calibration_error
from veriformer.spec.generation.greedy import greedy
from veriformer.spec.generation.temperature_scale import temperature_scale, temperature_scale_vjp
from veriformer.spec.generation.top_k_filter import top_k_filter
from veriformer.spec.generation.top_p_filter import mass_before, top_p_filter
from veriformer.spec.registry import select
from veriformer.spec.scores.softmax import softmax

C = EXACT.context


def calibration_route(a):
    """Sample by sample into lists, with fractions: (lo, hi], and edges as rounded to fp64."""
    bins = [[] for _ in range(a["num_bins"])]
    for row, target in zip(a["probs"].tolist(), a["target"], strict=True):
        k = row.index(max(row))
        at = next(m for m in range(a["num_bins"]) if row[k] <= (m + 1) / a["num_bins"] or m == a["num_bins"] - 1)
        bins[at].append((Fraction(int(k == target)), Fraction(row[k])))
    gaps = [abs(sum(c for c, _ in held) / len(held) - sum(p for _, p in held) / len(held)) for held in bins if held]
    sizes = [len(held) for held in bins if held]
    return float(sum(s * gap for s, gap in zip(sizes, gaps, strict=True)) / len(a["target"]))


def test_the_gradient_of_temperature_numerically():
    # Central differences: with h = 2^-90 the error is about 2^-180, far below what rounding to fp64 shows.
    rng, h = np.random.default_rng(4), C.ldexp(1, -90)
    z, g = EXACT.asarray(rng.normal(size=(2, 3))), EXACT.asarray(rng.normal(size=(2, 3)))
    gradient = temperature_scale_vjp(EXACT, z, 0.7, g)
    for place in np.ndindex(2, 3):
        sides = []
        for step in (h, -h):
            moved = z.value.copy()
            moved[place] += step
            sides.append(np.sum(g.value * temperature_scale(EXACT, EXACT.asarray(moved), 0.7).value))
        assert float((sides[0] - sides[1]) / (2 * h)) == float(gradient.value[place])


def test_extreme_temperatures():
    z = XP.asarray([[1.0, 3.0, 2.0], [5.0, 5.0, -1e300]])
    for tiny in (5e-324, 1e-40, 1e-3):
        assert floats(temperature_scale(XP, z, tiny)).tolist() == [[0, 1, 0], [0.5, 0.5, 0]]
    assert floats(temperature_scale(XP, z[0], 1e300)).tolist() == [1 / 3] * 3
    assert (floats(temperature_scale(XP, z, 1.0)) == floats(softmax(XP, z))).all()
    assert floats(temperature_scale(XP, XP.asarray([-math.inf, 0.0]), 0.5)).tolist() == [0, 1]


@pytest.mark.parametrize(("name", "tiny"), [("fp64", 1e-300), ("fp32", 1e-30), ("bf16", 1e-30), ("fp16", 2.0**-20)])
def test_a_tiny_temperature_can_be_judged(name, tiny):
    xp = RunningError(FORMATS[name])
    value, bound = xp.judgeable(temperature_scale(xp, xp.asarray([2.0, 1.0]), tiny))
    assert value.tolist() == [1, 0]
    assert np.isfinite(bound).all()


def test_calibration_by_two_routes():
    (equation,), rng = select("calibration-error"), np.random.default_rng(3)
    for _ in range(30):
        a = equation.sample(rng)
        found = expected_calibration_error(EXACT, EXACT.asarray(a["probs"]), a["target"], num_bins=a["num_bins"])
        assert found.shape == ()
        assert float(found.value[()]) == calibration_route(a)


def test_bins_are_closed_above_and_the_first_holds_zero():
    # Two samples that fall into one bin may cancel; in two bins they cannot.
    def pair(low, high, num_bins=4):
        probs = XP.asarray([[low, 0.0], [high, 0.0]])
        return float(expected_calibration_error(XP, probs, np.array([0, 1]), num_bins=num_bins).value[()])

    def together(low, high):
        return abs((1 - low) + (0 - high)) / 2

    def apart(low, high):
        return ((1 - low) + high) / 2

    assert pair(0.375, 0.5) == together(0.375, 0.5)
    assert pair(0.25, 0.5) == apart(0.25, 0.5)
    assert pair(0.5, 0.625) == apart(0.5, 0.625)
    assert pair(0.0, 0.25) == together(0.0, 0.25)
    assert pair(0.875, 1.0) == together(0.875, 1.0)
    # The edge 1/10 is the number that fp64 has for it.
    assert pair(0.0625, 0.1, num_bins=10) == together(0.0625, 0.1)


def test_a_tied_confidence_is_the_lower_class():
    probs = XP.asarray([[0.25, 0.5, 0.5]])
    assert float(expected_calibration_error(XP, probs, np.array([1])).value[()]) == 0.5
    assert float(expected_calibration_error(XP, probs, np.array([2])).value[()]) == 0.5
    probs = XP.asarray([[0.25, 0.25]])
    assert float(expected_calibration_error(XP, probs, np.array([0])).value[()]) == 0.75
    assert float(expected_calibration_error(XP, probs, np.array([1])).value[()]) == 0.25


def test_calibration_of_a_batch_is_that_of_its_rows():
    rng = np.random.default_rng(8)
    probs, target = rng.dirichlet(np.ones(4), size=(3, 2)), rng.integers(0, 4, size=(3, 2))
    flat = expected_calibration_error(XP, XP.asarray(probs.reshape(6, 4)), target.ravel())
    assert floats(expected_calibration_error(XP, XP.asarray(probs), target)) == floats(flat)


def kept(filtered):
    return (floats(filtered) > -math.inf).tolist()


def test_top_k_keeps_exactly_k():
    z = XP.asarray([[1.0, 3.0, 3.0, 2.0], [0.0, 0.0, 0.0, 0.0]])
    assert kept(top_k_filter(XP, z, 1)) == [[False, True, False, False], [True, False, False, False]]
    assert kept(top_k_filter(XP, z, 3)) == [[False, True, True, True], [True, True, True, False]]
    assert (floats(top_k_filter(XP, z, 4)) == floats(z)).all()
    assert floats(top_k_filter(XP, z, 2))[0, 1:3].tolist() == [3, 3]


def nucleus(row, p):
    """Return the nucleus: tokens from the most probable on, until their mass reaches p."""
    weights = [C.exp(C.mpf(z)) for z in row]
    chosen, mass = [], C.mpf(0)
    for k in sorted(range(len(row)), key=lambda k: (-row[k], k)):
        if chosen and mass >= p:
            break
        chosen.append(k)
        mass += weights[k] / C.fsum(weights)
    return [k in chosen for k in range(len(row))]


def test_top_p_by_two_routes():
    rng = np.random.default_rng(6)
    for _ in range(40):
        z, p = rng.integers(-8, 8, size=(2, 5)) / 4, float(rng.uniform(0, 1))
        assert kept(top_p_filter(EXACT, EXACT.asarray(z), p)) == [nucleus(row, p) for row in z.tolist()]


def test_top_p_at_its_ends():
    z = XP.asarray([1.0, 2.0, 2.0, -500.0])
    assert kept(top_p_filter(XP, z, 0.0)) == [False, True, False, False]
    assert kept(top_p_filter(XP, z, 1.0)) == [True] * 4
    even = XP.asarray([0.0, 0.0, 0.0, 0.0])
    assert kept(top_p_filter(XP, even, 0.5)) == [True, True, False, False]
    assert floats(mass_before(XP, even)).tolist() == [0, 0.25, 0.5, 0.75]


@pytest.mark.parametrize("name", FORMATS)
def test_filters_are_exact_in_every_format(name):
    xp = RunningError(FORMATS[name])
    z = xp.asarray([0.5, 2.0, -1.0])
    for filtered in (top_k_filter(xp, z, 2), top_p_filter(xp, z, 0.9)):
        value, bound = xp.judgeable(filtered)
        assert value.tolist() == [0.5, 2.0, -math.inf]
        assert (filtered.error == 0).all()
        assert np.isfinite(bound).all()


def test_greedy_takes_the_lowest_of_equals():
    assert greedy(np.array([[1.0, 2.0, 2.0], [3.0, 3.0, 3.0]])).tolist() == [1, 0]
    assert greedy(XP.asarray([0.0, 1.0])).tolist() == 1
    assert greedy(np.zeros((2, 3, 4))).shape == (2, 3)


EOS = 0


def model(seed, size):
    table = {}

    def row(ids):
        if ids not in table:
            draws = np.random.default_rng([seed, len(ids), *ids]).dirichlet(np.ones(size))
            table[ids] = np.log(draws)
        return table[ids]

    return lambda batch: np.array([row(tuple(map(int, ids))) for ids in batch])


def every_text(size, start, max_length):
    for n in range(1, max_length - len(start) + 1):
        for ids in product(range(size), repeat=n):
            if EOS not in ids[:-1] and (ids[-1] == EOS or len(start) + n == max_length):
                yield list(ids)


def score(step, start, ids, penalty):
    total = 0.0
    for k, i in enumerate(ids):
        total += step(np.array([[*start, *ids[:k]]]))[0, i]
    return total / len(ids) ** penalty if penalty else total


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
def test_an_exhaustive_beam_finds_the_best(penalty):
    start = [2, 1]
    for seed in range(5):
        step = model(seed, 3)
        ids, found = beam_search(step, start, beam_width=81, max_length=5, eos=EOS, length_penalty=penalty)
        best = max(every_text(3, start, 5), key=lambda ids: score(step, start, ids, penalty))
        assert ids == start + best
        assert found == score(step, start, best, penalty)


def test_a_beam_of_one_is_greedy():
    for seed in range(5):
        step, ids = model(seed, 4), [3]
        while len(ids) < 6 and (len(ids) == 1 or ids[-1] != EOS):
            ids.append(int(greedy(step(np.array([ids]))[0])))
        assert beam_search(step, [3], beam_width=1, max_length=6, eos=EOS)[0] == ids


def constant(*probabilities):
    with np.errstate(divide="ignore"):
        row = np.log(probabilities)
    return lambda batch: np.tile(row, (len(batch), 1))


def test_what_ends_leaves_the_beam_and_competes():
    ids, found = beam_search(constant(0.5, 0.25, 0.25), [1], beam_width=2, max_length=4, eos=EOS)
    assert (ids, found) == ([1, 0], math.log(0.5))
    # Per token, 2 with 0.75 is as good as ever, and the end is worse.
    ids, found = beam_search(constant(0.25, 0.0, 0.75), [1], beam_width=2, max_length=4, eos=EOS, length_penalty=1.0)
    assert ids == [1, 2, 2, 2]
    assert found == 3 * math.log(0.75) / 3


def test_ties_go_to_the_earlier_hypothesis_and_the_lower_id():
    assert beam_search(constant(0.0, 0.5, 0.5), [2], beam_width=1, max_length=3, eos=EOS)[0] == [2, 1, 1]


def test_what_cannot_happen_is_never_taken():
    asked = []

    def step(batch):
        asked.append(batch.tolist())
        return constant(0.0, 1.0, 0.0)(batch)

    assert beam_search(step, [2], beam_width=5, max_length=3, eos=EOS) == ([2, 1, 1], 0.0)
    assert asked == [[[2]], [[2, 1]]]
    with pytest.raises(ValueError, match="step"):
        beam_search(constant(0.0, 0.0), [1], beam_width=2, max_length=3, eos=EOS)


def test_no_room_leaves_the_start():
    assert beam_search(constant(0.5, 0.5), [1, 1], beam_width=2, max_length=2, eos=EOS, length_penalty=1.0) == (
        [1, 1],
        0,
    )
