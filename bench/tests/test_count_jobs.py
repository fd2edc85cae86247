"""Counts by several processes are the counts of one, whatever a target does to the process that counts it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from veriformer.bench import assess
from veriformer.bench.counting import command as counting
from veriformer.bench.counting.items import Given, InOrder, Item, items
from veriformer.bench.document import Count
from veriformer.bench.verdicts import Verdict

MINE = """
import os
from torch.nn.functional import silu

def residual(x, branch):
    return x + branch
"""
ENDS = """
def gelu(x, *, approximate="none"):
    os._exit(7)
"""
THEIRS = "from torch.nn.functional import silu\n\ndef residual(x, branch):\n    return branch + x\n"


def counted(given: Given, wanted: list[Item], jobs: int) -> list[Count]:
    found: list[Count] = []
    order = InOrder(wanted)
    tell = lambda item, counts: [found.extend(x) for _, x in order.take(item, counts)]  # noqa: E731
    counting.count(given, wanted, jobs, tell, print)
    return [replace(one, seconds=0.0) for one in found]


@pytest.fixture
def given(tmp_path: Path) -> Given:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "theirs.py").write_text(THEIRS)
    return Given((str(tmp_path / "mine.py"), str(tmp_path / "theirs.py")))


@pytest.mark.whole
def test_two_processes_count_what_one_does_target_by_target(given: Given) -> None:
    wanted = items(given.targets, (), whole=True)
    found = counted(given, wanted, 2)
    assert found == counted(given, wanted, 1)
    assert [one.target for one in found] == sorted((one.target for one in found), key=given.words.index)
    assert {one.target for one in found} == set(given.words)


def test_what_targets_share_is_counted_once(given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = items(given.targets, (), whole=True)
    assert {item.operation: item.places for item in wanted if len(item.places) > 1} == {"silu": (0, 1)}
    measured: list[str] = []
    measure = assess.measure
    monkeypatch.setattr(assess, "measure", lambda given: measured.append(given.family.operation) or measure(given))
    found = counted(given, wanted, 1)
    assert measured.count("silu") == 2  # forward, and both passes
    assert measured.count("residual") == 4
    one, other = (
        [replace(x, target="") for x in found if x.target == word and x.operation == "silu"] for word in given.words
    )
    assert one == other != []


@pytest.mark.whole
def test_an_operation_that_ends_its_process_costs_itself_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(MINE + ENDS)
    given = Given((str(tmp_path / "ends.py"),))
    wanted = items(given.targets, ("silu", "gelu", "residual"), whole=True)
    found = counted(given, wanted, 2)
    assert {one.verdict for one in found if one.operation == "gelu"} == {Verdict.NOT_COUNTABLE}
    assert "the process that counted it ended" in next(one.reason or "" for one in found if one.operation == "gelu")
    assert {one.operation for one in found if one.verdict is Verdict.CONFIRMED} == {"silu", "residual"}
