"""Timings, as a page shows them."""

import dataclasses

import pytest

from veriformer.bench.document import Benchmarks, Gate, Tries, joined
from veriformer.bench.regression.record import History, Level, Regression
from veriformer.bench.scaling.record import Scaling
from veriformer.bench.statistics import Change
from veriformer.bench.verdicts import Verdict
from veriformer.reports import page
from veriformer.reports.page import timings

SCALING = Scaling(
    target="mine.py",
    operation="attention",
    name="attention over n, forward",
    size="n",
    passes="forward",
    verdict=Verdict.CONFIRMED,
    reason="grows as n^1.93",
    predicted=[1.0, 2.0],
    elasticity=1.93,
    interval=[1.9, 1.95],
    sizes=[16, 32, 64, 128],
    seconds=[[1e-4, 3.8e-4, 1.5e-3, 6e-3]] * 3,
    fit={"FLOPs": 1e-10},
    fixed={"d": 64},
)
SLOWER = Regression(
    workload="rms_norm, forward",
    base="../base",
    head=".",
    verdict=Change.SLOWER,
    reason="by +12.0%",
    ratio=1.12,
    interval=[1.1, 1.14],
    seconds={"base": 1e-3, "head": 1.12e-3},
    turns={"base": [[1e-3] * 2], "head": [[1.12e-3] * 2]},
    clock="cpu",
    device="cpu",
    fingerprint="here",
)
HISTORY = History(
    workload="softmax, forward",
    clock="cpu",
    when=[f"2026-01-{i + 1:02}" for i in range(24)],
    version=[f"commit {i}" for i in range(24)],
    seconds=[1e-3] * 12 + [1.5e-3] * 12,
    levels=[Level(start=12, ratio=1.5)],
)
GATE = Gate(
    false_alarms=[Tries(what="simulated, identical", count=0, tries=500, interval=[0.0, 0.007])],
    found=[Tries(what="simulated, 10% slower", count=487, tries=500, interval=[0.956, 0.986])],
)


def benchmarks(**found):
    suite, environment = {"version": "0", "commit": None}, {"python": "3", "torch": "2", "platform": "L"}
    return Benchmarks(suite=suite, environment=environment, started="now", duration_s=1.0, **found)


@pytest.fixture
def everything():
    refuted = dataclasses.replace(SCALING, name="softmax over d, forward", verdict=Verdict.REFUTED)
    same = dataclasses.replace(SLOWER, workload="softmax, forward", verdict=Change.SAME, ratio=1.0)
    return benchmarks(scalings=[SCALING, refuted], regressions=[same, SLOWER], histories=[HISTORY], gate=GATE)


def test_what_is_wrong_comes_first(everything):
    found = timings(everything)
    assert [one.verdict for one in found.scalings] == ["refuted", "confirmed"]
    assert [one.verdict for one in found.regressions] == ["slower", "same"]


def test_the_page_shows_slopes_ratios_and_the_gate(everything, run):
    text = page.render(page.Inputs(runs=page_runs(run), benchmarks=everything))
    for said in ('id="timings"', "grows as n^1.93", "1.120", "487 of 500", "95.6 % to 98.6 %", "<svg"):
        assert said in text


def test_the_page_shows_where_a_history_changed(everything, run):
    text = page.render(page.Inputs(runs=page_runs(run), benchmarks=everything))
    section = text[text.index("History on this machine") : text.index("What this gate is worth")]
    for said in ("softmax, forward", "50% slower since commit 12, 2026-01-13", "1.5 ms", "24 runs, cpu clock", "<svg"):
        assert said in section
    assert section.count("<svg") == 1


def test_a_history_without_a_change_says_so(run):
    flat = dataclasses.replace(HISTORY, seconds=[1e-3] * 24, levels=[])
    text = page.render(page.Inputs(runs=page_runs(run), benchmarks=benchmarks(histories=[flat])))
    assert "never" in text
    assert "slower since" not in text


def test_without_times_there_is_no_section(run):
    text = page.render(page.Inputs(runs=page_runs(run), benchmarks=benchmarks()))
    assert 'id="timings"' not in text


def test_runs_are_joined_and_written_as_the_schema_says(everything):
    whole = joined([benchmarks(), everything])
    assert Benchmarks.from_dict(whole.to_dict()) == whole
    assert (len(whole.scalings), len(whole.regressions), whole.gate) == (2, 2, GATE)
    assert whole.exit_status == 1
    assert joined([]) is None


def page_runs(run):
    from veriformer.reports.runs import label

    return label([run([])])
