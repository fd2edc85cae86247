"""The time of a row: seconds of the processor where the machine is busy, by the clock where the target waits."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FunctionType

import hypothesis.strategies as st
import pytest

from veriformer.verify.examples import prepared, without_constants
from veriformer.verify.judging import isolation
from veriformer.verify.judging.exceptions import Interrupted, RowTimeout
from veriformer.workers import stopwatch

LIMIT_S = 0.05


@pytest.mark.parametrize(
    ("share", "waits", "times"),
    [(1.0, 0.0, 1.0), (0.5, 0.0, 2.0), (0.2, 0.0, isolation.MOST), (0.0, 0.0, 1.0), (0.05, 0.95, 20.0)],
    ids=["alone", "beside another", "among many", "asleep", "among very many, which the system says"],
)
def test_a_process_that_is_kept_waiting_has_its_time(
    monkeypatch: pytest.MonkeyPatch, share: float, waits: float, times: float
) -> None:
    rings: list[float] = []
    clock, timer = time.monotonic, isolation.signal.setitimer
    monkeypatch.setattr(stopwatch, "thread_time", lambda: share * clock())
    monkeypatch.setattr(stopwatch, "kept_waiting", lambda: waits * clock())
    monkeypatch.setattr(isolation.signal, "setitimer", lambda which, s: (rings.append(s), timer(which, s))[1])
    began = clock()
    with pytest.raises(RowTimeout), isolation.time_limit(LIMIT_S, may_kill=False):
        _for_ever()
    assert clock() - began >= times * LIMIT_S
    assert (len(rings) == 2) is (times == 1.0), "set once and taken back, or set again"


def _for_ever() -> None:
    while True:
        pass


@pytest.mark.whole
def test_the_time_ends_hypothesis_without_an_error_of_its_own() -> None:
    """Ended at any moment, it fails in a third of these runs with what it left half done, or goes on."""
    body = _called("veriformer.verify.anything", _draw_and_work)
    prepared(body, "", 2)()  # (what is imported for the first)
    for run in range(60):
        limit = isolation.time_limit((run % 15 + 1) / 1000, may_kill=False)
        with pytest.raises(RowTimeout), limit, without_constants():
            prepared(body, f"{run}", 1_000)()


def _draw_and_work(data: st.DataObject) -> None:
    data.draw(st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=6), min_size=5, max_size=9))
    for _ in range(20_000):
        pass


def test_the_time_ends_also_what_hypothesis_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "_PATIENCE", LIMIT_S)
    with pytest.raises(RowTimeout), isolation.time_limit(LIMIT_S, may_kill=False):
        _called("hypothesis.engine", _for_ever)()


@pytest.mark.whole
def test_ctrl_c_waits_no_longer_for_hypothesis_than_the_time_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "_PATIENCE", LIMIT_S)
    began = time.monotonic()
    with pytest.raises(Interrupted), isolation.time_limit(3, may_kill=False):
        _called("hypothesis.engine", _interrupted_for_ever)()
    assert time.monotonic() - began < 2


def _interrupted_for_ever() -> None:
    signal.raise_signal(signal.SIGINT)
    while True:
        pass


def test_ctrl_c_within_hypothesis_is_kept_until_it_is_done() -> None:
    done: list[bool] = []
    with pytest.raises(Interrupted), isolation.time_limit(60, may_kill=False):
        _called("hypothesis.engine", _interrupted)(done)
    assert done, "ended within"


def _interrupted(done: list[bool]) -> None:
    signal.raise_signal(signal.SIGINT)
    done.append(True)


def _called(module: str, function: Callable[..., None]) -> Callable[..., None]:
    """A function as if it stood in another module."""
    return FunctionType(function.__code__, {**globals(), "__name__": module})
