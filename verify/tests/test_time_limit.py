"""The time of a row: seconds of the processor where the machine is busy, by the clock where the target waits."""

from __future__ import annotations

import time

import pytest

from veriformer.verify.judging import isolation, stopwatch
from veriformer.verify.judging.interruption import RowTimeout

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
