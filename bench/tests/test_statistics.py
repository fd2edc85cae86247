"""Properties of ratios and slopes that hold for any times."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veriformer.bench.regression.gate import Noise, simulate, simulated_block
from veriformer.bench.regression.measure import Plan
from veriformer.bench.statistics import Block, Change, Floors, Share, holm, judge, theil_sen

SEEDS = st.integers(0, 2**32 - 1)
SLOWDOWNS = st.floats(-0.5, 1.0)
EXCHANGED = {Change.SLOWER: Change.FASTER, Change.FASTER: Change.SLOWER}


def blocks(seed, slowdown, number=6, noise=Noise()):  # noqa: B008, a frozen record
    random = np.random.default_rng(seed)
    return [simulated_block(random, noise, slowdown, Plan(quads=3, most=3)) for _ in range(number)]


def times(seed, exponent, noise=0.02, processes=4):
    random = np.random.default_rng(seed)
    sizes = [2**i for i in range(4, 11)]
    return [
        {n: list(1e-6 * n**exponent * np.exp(random.normal(0, noise, 3) + random.normal(0, noise))) for n in sizes}
        for _ in range(processes)
    ]


@given(SEEDS, SLOWDOWNS)
def test_exchanging_the_arms_exchanges_the_verdict(seed, slowdown):
    *measured, fresh = blocks(seed, slowdown)
    there = judge(measured, Floors(), fresh)
    back = judge([Block(b.head, b.base) for b in measured], Floors(), Block(fresh.head, fresh.base))
    assert back.change is EXCHANGED.get(there.change, there.change)


@given(SEEDS, SLOWDOWNS, st.permutations(range(5)), st.sampled_from([1e-3, 1e3]))
def test_neither_units_nor_the_order_of_processes_matter(seed, slowdown, order, unit):
    *measured, fresh = blocks(seed, slowdown)
    floors = Floors(absolute=0)
    scaled = [Block([unit * x for x in b.base], [unit * x for x in b.head]) for b in (*measured, fresh)]
    assert judge([scaled[i] for i in order], floors, scaled[-1]).change is judge(measured, floors, fresh).change


@given(SEEDS, SLOWDOWNS, st.floats(0, 2))
def test_what_is_slower_stays_so_where_it_gets_slower_still(seed, slowdown, more):
    *measured, fresh = blocks(seed, slowdown)
    slowed = [Block(b.base, [x * (1 + more) for x in b.head]) for b in (*measured, fresh)]
    if judge(measured, Floors(), fresh).change is Change.SLOWER:
        assert judge(slowed[:-1], Floors(), slowed[-1]).change is Change.SLOWER


def test_nothing_is_slower_that_no_fresh_process_confirms():
    *measured, _ = blocks(0, 0.5)
    (same,) = blocks(0, 0.0, 1, Noise(0, 0, 0, 0))
    assert judge(measured, Floors()).change is Change.AMBIGUOUS
    assert "fresh" in judge(measured, Floors(), same).reason


def test_a_difference_below_the_absolute_floor_is_none():
    *measured, fresh = blocks(0, 0.5)
    assert judge(measured, Floors(), fresh).change is Change.SLOWER
    assert judge(measured, Floors(absolute=1e-2), fresh).change is Change.AMBIGUOUS


@pytest.mark.whole
@pytest.mark.parametrize("noise", [Noise(), Noise(drift=0.03, bursts=0.2), Noise(turn=0.1, process=0.05)], ids=str)
def test_the_gate_keeps_quiet_on_identical_code_that_drifts(noise):
    alarms = [c for c in simulate(500, 0.0, Plan(), noise, seed=11) if c in EXCHANGED]
    assert len(alarms) <= 5


def test_the_gate_finds_what_is_a_tenth_slower():
    found = [c for c in simulate(200, 0.1, Plan(), Noise(), seed=12) if c is Change.SLOWER]
    assert len(found) >= 190


BUSY = Noise(turn=0.05, process=0.02, drift=0.02, bursts=0.15)


@given(SEEDS, st.floats(0.5, 2))
def test_how_slow_the_head_is_has_no_say_in_how_long_is_measured(seed, factor):
    (block,) = blocks(seed, 0.0, 1)
    slowed = Block(block.base, [factor * x for x in block.head])
    assert abs(slowed.standard_error - block.standard_error) < 1e-9


def test_a_pair_that_is_not_steady_takes_more_turns():
    quiet, busy = (simulated_block(np.random.default_rng(3), noise, 0.0, Plan()) for noise in (Noise(0, 0, 0, 0), BUSY))
    assert len(quiet.base) == 2 * Plan().quads
    assert len(busy.base) > 2 * len(quiet.base)


@pytest.mark.whole
def test_on_a_busy_machine_a_tenth_is_found_by_more_turns():
    found, without = (
        sum(c is Change.SLOWER for c in simulate(100, 0.1, plan, BUSY, seed=13)) for plan in (Plan(), Plan(most=7))
    )
    assert found >= 80 > 70 > without


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.floats(0.5, 3))
def test_a_planted_exponent_is_recovered(seed, exponent):
    slope = theil_sen(times(seed, exponent))
    assert abs(slope.value - exponent) < 0.05
    assert slope.outside((exponent - 0.1, exponent + 0.1)) < 0.01
    assert slope.inside((exponent + 0.1, exponent + 0.3)) < 0.01


@settings(max_examples=5, deadline=None)
@given(SEEDS, st.sampled_from([1e-3, 1e3]))
def test_units_do_not_change_a_slope(seed, unit):
    measured = times(seed, 1.5)
    scaled = [{n: [unit * x for x in seconds] for n, seconds in one.items()} for one in measured]
    assert abs(theil_sen(measured).value - theil_sen(scaled).value) < 1e-9


@settings(max_examples=5, deadline=None)
@given(SEEDS, st.permutations(range(4)), st.permutations(range(3)))
def test_neither_the_order_of_calls_nor_that_of_processes_changes_a_slope_or_its_verdict(seed, processes, turns):
    measured = times(seed, 1.5)
    mixed = [{n: [s[i] for i in turns] for n, s in reversed(measured[p].items())} for p in processes]
    here, there = theil_sen(measured), theil_sen(mixed)
    assert abs(here.value - there.value) < 1e-12
    assert max(one.outside((1.3, 1.7)) for one in (here, there)) < 0.01
    assert max(one.inside((1.7, 1.9)) for one in (here, there)) < 0.01


def test_of_many_hypotheses_only_the_surest_are_rejected():
    assert holm([0.001, 0.04, 0.03], 0.05) == [True, False, False]
    assert holm([0.01, 0.02, 0.03], 0.05) == [True, True, True]


def test_a_share_carries_its_interval():
    assert Share(0, 500).interval[1] < 0.01
    assert Share(0, 0).interval == (0.0, 1.0)
