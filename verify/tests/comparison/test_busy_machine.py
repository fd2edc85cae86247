"""A machine whose processors are taken by others: what is late there says nothing of a candidate."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from veriformer.verify.comparison import server
from veriformer.verify.comparison.session import Done, Session


@pytest.mark.parametrize(("waited", "starved"), [(0.0, False), (0.05, True)])
def test_a_late_job_that_had_no_processor_is_starved(
    waited: float, starved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = os.fork()
    if child == 0:
        time.sleep(30)
        os._exit(0)
    monkeypatch.setattr(server, "kept_waiting", lambda process: waited)
    ended = server._waited(child, 0.08)
    assert (ended["late"], ended["starved"]) == (True, starved)


@pytest.mark.parametrize("starved", [False, True])
def test_a_call_that_had_no_processor_is_not_called_one_that_hangs(
    starved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def job(self: Session, kind: str, budget: float, **given: Any) -> Done:
        (tmp_path / "begun").write_text("given\n", encoding="utf-8")
        return Done(tmp_path, None, late=True, starved=starved)

    monkeypatch.setattr(Session, "job", job)
    ran = Session.candidate(object.__new__(Session), "mine.py", tmp_path, ["given"], 0.0)
    assert {name: record["error"][0] for name, record in ran.records.items()} == ({} if starved else {"given": "hangs"})
