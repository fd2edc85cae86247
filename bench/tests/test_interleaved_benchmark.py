import time

import pytest

from veriformer.bench.document import Goal
from veriformer.bench.peers import turns as racing
from veriformer.bench.peers.turns import AGAIN, OURS, Estimate, Times, interleaved_benchmark, interval
from veriformer.bench.verdicts import Verdict


def times(ours, again, theirs):
    return Times({OURS: ours, AGAIN: again, "theirs": theirs})


def test_ratios_are_those_of_a_round():
    """A neighbour who slows down a whole round changes no ratio."""
    found = times([1.0, 10.0, 1.0, 3.0, 1.0, 2.0], [1.0, 10.0, 1.0, 3.0, 1.0, 2.0], [2.0, 20.0, 2.0, 6.0, 2.0, 4.0])
    assert found.speed("theirs") == Estimate(2.0, (2.0, 2.0), 1.0)
    assert found.speed("theirs", factor=3.0).ratio == 6.0
    assert found.time("theirs") == Estimate(0.5, (0.5, 0.5), 1.0)
    assert found.time("theirs", factor=2.0).ratio == 0.25
    assert found.of("theirs") == 3.0


def test_the_noise_is_how_far_ours_strays_from_itself():
    slower_first = times([1.0, 1.0, 2.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.25, 1.0, 1.0], [1.0] * 6)
    assert slower_first.speed("theirs").noise == 2.0
    assert times([1.0, 1.0, 1.0, 1.0, 1.0, 0.8], [1.0] * 6, [1.0] * 6).time("theirs").noise == 1 / 0.8


@pytest.mark.parametrize(
    ("estimate", "goal", "verdict"),
    [
        (Estimate(1.2, (1.1, 1.3), 1.02), Goal(kind="at least", ratio=1.1), Verdict.CONFIRMED),
        (Estimate(1.2, (1.1, 1.3), 1.2), Goal(kind="at least", ratio=1.1), Verdict.INCONCLUSIVE),
        (Estimate(1.2, (1.0, 1.3), 1.02), Goal(kind="at least", ratio=1.1), Verdict.INCONCLUSIVE),
        (Estimate(1.0, (0.9, 1.05), 1.02), Goal(kind="at least", ratio=1.1), Verdict.REFUTED),
        (Estimate(1.0, (0.9, 1.05), 1.11), Goal(kind="at least", ratio=1.1), Verdict.INCONCLUSIVE),
        (Estimate(0.3, (0.2, 0.35), 1.0), Goal(kind="at most", ratio=0.35), Verdict.CONFIRMED),
        (Estimate(0.3, (0.2, 0.36), 1.0), Goal(kind="at most", ratio=0.35), Verdict.INCONCLUSIVE),
        (Estimate(0.4, (0.38, 0.5), 1.05), Goal(kind="at most", ratio=0.35), Verdict.REFUTED),
        (Estimate(0.4, (0.38, 0.5), 1.2), Goal(kind="at most", ratio=0.35), Verdict.INCONCLUSIVE),
    ],
)
def test_a_goal_is_judged_only_beyond_noise_and_interval(estimate, goal, verdict):
    assert estimate.judge(goal) is verdict


@pytest.mark.parametrize(("n", "left_out"), [(6, 0), (8, 0), (9, 1), (15, 3), (25, 7)])
def test_the_interval_of_the_median_is_that_of_the_sign_test(n, left_out):
    """The numbers of values to leave out on each side are in every table of the sign test at 5 %."""
    assert interval([float(x) for x in reversed(range(n))]) == (left_out, n - 1 - left_out)


def test_all_sides_run_in_every_round_and_ours_twice(monkeypatch):
    monkeypatch.setattr(racing, "_SHORTEST", 0.0)
    order, told = [], []
    sides = {OURS: lambda: order.append("o"), "theirs": lambda: order.append("t")}
    found = interleaved_benchmark(sides, rounds=20, tell=told.append)
    assert told == list(range(20))
    assert {name: len(seconds) for name, seconds in found.seconds.items()} == {OURS: 20, "theirs": 20, AGAIN: 20}
    rounds = ["".join(order[i : i + 3]) for i in range(len(order) - 60, len(order), 3)]
    assert {"".join(sorted(turn)) for turn in rounds} == {"oot"}
    assert len(set(rounds)) == 3


def test_what_is_quick_runs_several_times_in_a_turn():
    calls = []
    found = interleaved_benchmark({OURS: lambda: time.sleep(0.004), "theirs": lambda: calls.append(0)}, rounds=6)
    assert 0.003 < found.of(OURS) < 0.04
    assert len(calls) > 6 * 100


def test_the_clock_of_the_process_does_not_count_sleep():
    found = interleaved_benchmark({OURS: lambda: time.sleep(0.01)}, rounds=6, clock="cpu")
    assert found.of(OURS) < 0.01
