"""A row whose examples cannot tell right from wrong draws on for a while, and is vacuous only then."""

from __future__ import annotations

import importlib
import time
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch

from veriformer.spec.requirement import Kind, Requirement, Weight
from veriformer.verify import examples as examples_module
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.engine.search import MAX_DRAW_FACTOR, Search
from veriformer.verify.judging.check import Check
from veriformer.verify.judging.exceptions import RowTimeout
from veriformer.verify.judging.judge import Reference, Violation
from veriformer.verify.judging.row import CheckRun, plan
from veriformer.verify.judging.trial import Trial
from veriformer.verify.results import Status
from veriformer.verify.scripts.script import Recorded
from veriformer.verify.strategies import seeds, sizes
from veriformer.verify.targets.loading import load
from veriformer.workers.stopwatch import Stopwatch

LAW = Requirement(
    slug="softmax.test",
    operation="softmax",
    statement="a law",
    floating_point_statement="the same",
    kind=Kind.LAW,
    weight=Weight.WRONG,
)
PLANNED = PROFILES["quick"].examples
SHARP, BLUNT = Reference(np.array(1.0), np.array(0.5)), Reference(np.array(1.0), np.array(2.0))


def ran(blunt: int) -> tuple[Status, int, float | None]:
    """Status, examples and vacuous share of a row whose first examples are blunt, so many of them."""
    turns = count()

    def body(trial: Trial) -> None:
        trial.draw(seeds())
        trial.effective.append((SHARP if next(turns) >= blunt else BLUNT).effective)

    result = run_check(
        CheckRun(Check(requirement=LAW, property_test=body), "fp64"), load("torch"), PROFILES["quick"], "0", {}
    )
    return result.status, result.examples, result.vacuous_share


def test_a_row_of_sharp_examples_runs_as_many_as_planned() -> None:
    assert ran(0) == (Status.PASS, PLANNED, 0.0)


def test_a_row_of_blunt_examples_is_vacuous_in_the_end() -> None:
    assert ran(10**6) == (Status.VACUOUS, MAX_DRAW_FACTOR * PLANNED, 1.0)


@pytest.mark.parametrize("blunt", [PLANNED // 2, PLANNED, 2 * PLANNED])
def test_unlucky_examples_are_made_up_for(blunt: int) -> None:
    status, examples, share = ran(blunt)
    assert (status, share) == (Status.PASS, blunt / examples)
    assert examples == PLANNED * -(-(blunt + PLANNED // 2) // PLANNED)


def drawn(seed: str) -> list[int]:
    """Return the draws of a row of this seed."""
    found: list[int] = []

    def body(trial: Trial) -> None:
        found.extend(trial.draw(strategy) for strategy in (sizes(0, 9999), seeds()))
        trial.effective.append(True)

    row = CheckRun(Check(requirement=LAW, property_test=body, effort=20), "fp64")
    run_check(row, load("torch"), PROFILES["quick"], seed, {})
    return found


@pytest.mark.whole
def test_a_seed_settles_what_is_drawn_whatever_code_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn("7")
    place = tmp_path / "full_of_constants.py"
    place.write_text(f"CONSTANTS = {list(range(1000, 9000, 11))}\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("full_of_constants")
    assert drawn("7") == before
    assert drawn("8") != before


@pytest.mark.whole
def test_a_version_of_hypothesis_without_constants_needs_no_care(monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn("7")
    monkeypatch.setattr(examples_module, "HypothesisProvider", object)
    assert len(drawn("7")) == len(before)


@pytest.mark.whole
def test_seeds_are_drawn_from_all_there_are() -> None:
    found = [x for i in range(4) for x in drawn(str(i))[1::2]]
    assert len(set(found)) > 0.75 * len(found)  # the simplest is 0, and begins every burst
    assert 0.4 < sum(x < 2**31 for x in found if x) / sum(x > 0 for x in found) < 0.6


@pytest.mark.parametrize("seed", ["0", "1", "2", "3"])
def test_shrinking_never_slips_from_one_failure_to_another(seed: str) -> None:
    """Long rows break a law; rows of two raise. Made smaller, the first stays what it is."""
    first: list[str] = []

    def body(trial: Trial) -> None:
        n = trial.draw(sizes(1, 40))
        if n == 2:
            first.append("raised ZeroDivisionError")
            raise Violation("raised ZeroDivisionError: 0") from ZeroDivisionError("0")
        if n >= 5:
            first.append("a law is broken")
            raise Violation(f"a law is broken at {n}", about="law")
        trial.effective.append(True)

    row = CheckRun(Check(requirement=LAW, property_test=body, effort=4), "fp64")
    result = run_check(row, load("torch"), PROFILES["quick"], seed, {})
    assert str(result.message).startswith(first[0])
    if first[0] == "a law is broken":
        assert result.message == "a law is broken at 5"


@pytest.mark.parametrize(
    ("example", "seconds", "shape", "status", "judged"),
    [
        (5, 1.0, (2, 1), Status.PASS, 4),
        (5, 19.0, (2, 1), Status.TIMEOUT, 4),
        (5, 19.0, (2, 2), Status.PASS, 4),
        (5, 19.0, (1, 2), Status.PASS, 4),
        (5, 0.0, (2, 1), Status.PASS, 4),
        (1, 1.0, (2, 1), Status.TIMEOUT, 0),
        (1, 0.0, (2, 1), Status.VACUOUS, 0),
    ],
    ids=["slow", "hangs", "larger", "longer along an axis", "judged for long", "in the first", "before the first call"],
)
def test_a_row_whose_time_is_over_is_judged_by_what_held_unless_it_hangs(
    example: int, seconds: float, shape: tuple[int, int], status: Status, judged: int
) -> None:
    turns = count(1)

    def body(trial: Trial) -> None:
        trial.draw(seeds())
        trial.effective.append(SHARP.effective)
        turn = next(turns)
        x = torch.zeros(shape if turn == example else (2, 1))
        trial.calls.append(Recorded("r0", "softmax", (), {"x": x}, (), None))
        if turn == example:
            if seconds:
                trial.waiting_since = Stopwatch(time.monotonic() - seconds, time.thread_time() - seconds)
            raise RowTimeout

    row = CheckRun(Check(requirement=LAW, property_test=body), "fp64")
    result = run_check(row, load("torch"), PROFILES["quick"], "0", {}, searching=Search)
    assert (result.status, result.examples) == (status, judged)
    assert f"stopped after 20 s in example {example}" in str(result.message)


def test_what_is_judged_in_one_format_is_judged_in_it_whatever_is_asked() -> None:
    few = [one for one in checks() if one.requirement.slug in ("noam.equation", "causal_lm.batch", "softmax.equation")]
    assert {row.key for row in plan(few, ["fp32"])} == {
        *("noam.equation[fp64-cpu]", "causal_lm.batch[fp64-cpu]", "causal_lm.batch[fp32-cpu]"),
        "softmax.equation[fp32-cpu]",
    }
    assert [row.dtype for row in plan(few[:1], ["fp64", "fp32"])].count("fp64") == 1
