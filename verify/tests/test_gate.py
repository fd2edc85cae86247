"""Processes that stand behind a gate load a target once another has, and not where it could not."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from veriformer.verify.engine.gate import Gate


def test_the_others_wait_until_the_target_is_loaded(tmp_path: Path) -> None:
    file, gate = tmp_path / "found", Gate()
    behind, passed = gate.behind(), threading.Event()
    waiting = threading.Thread(target=lambda: behind.passed() and passed.set())
    with gate.watching(file):
        assert gate.passed()
        waiting.start()
        assert not passed.wait(0.1)
        file.touch()
        assert passed.wait(10)
    waiting.join()


@pytest.mark.parametrize("raises", [False, True])
def test_where_it_could_not_be_loaded_the_others_do_not_try(tmp_path: Path, raises: bool) -> None:
    gate = Gate()
    behind = gate.behind()
    try:
        with gate.watching(tmp_path / "nowhere"):
            if raises:
                raise OSError
    except OSError:
        pass
    assert not behind.passed()
