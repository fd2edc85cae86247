"""Garbage of failing rows is collected when it has become much, and not after each of them."""

from __future__ import annotations

import ctypes
import gc
from types import SimpleNamespace
from typing import Any

import pytest

from veriformer import impl
from veriformer.verify.catalogue.selection import select
from veriformer.verify.engine import check_run
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.judging.row import plan
from veriformer.verify.targets.claims import Claims
from veriformer.verify.targets.target import Target

MIB = 2**20


@pytest.mark.parametrize(("sizes", "times"), [([300, 310, 320, 330], 1), ([300, 700, 200, 500], 3), ([0, 0], 0)])
def test_it_is_collected_where_the_process_has_grown(
    sizes: list[int], times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected: list[int] = []
    size = [0]
    monkeypatch.setattr(check_run, "_memory_left", 0)
    monkeypatch.setattr(check_run, "resident_bytes", lambda: size[0])
    monkeypatch.setattr(gc, "collect", lambda: collected.append(size[0]))
    for mebibytes in sizes:
        size[0] = mebibytes * MIB
        check_run.give_memory_back()
    assert len(collected) == times


def test_the_size_of_the_process_is_known() -> None:
    assert check_run.resident_bytes() > 10 * MIB


@pytest.mark.whole
def test_pages_that_the_c_library_keeps_are_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(check_run, "_memory_left", 0)
    monkeypatch.setattr(check_run, "resident_bytes", lambda: 300 * MIB)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(malloc_trim=asked.append))
    check_run.give_memory_back()
    assert asked == [0]


@pytest.mark.parametrize(("factor", "times"), [(2, 1), (1, 0)])
def test_rows_that_fail_give_back_and_others_do_not(factor: int, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def residual(*args: Any, **options: Any) -> Any:
        return factor * impl.residual(*args, **options)

    given: list[None] = []
    monkeypatch.setattr(check_run, "give_memory_back", lambda: given.append(None))
    (row,) = (one for one in plan(select(("residual.equation",)), ("fp32",)) if one.key.startswith("residual.equation"))
    run_check(row, Target("mine", SimpleNamespace(residual=residual), Claims(), None, ""), PROFILES["quick"], "x", {})
    assert len(given) == times
