"""The time of a survey: none of it goes by while the first example loads what all need, and all of it ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import hypothesis.strategies as st
import pytest
from hypothesis.errors import UnsatisfiedAssumption
from hypothesis.internal.conjecture.data import ConjectureData
from torch import Tensor

from veriformer import impl
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.findings import survey as of_survey
from veriformer.verify.findings.evidence import failing
from veriformer.verify.findings.survey import survey
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.targets.claims import Claims
from veriformer.verify.targets.target import Target

ROW = CheckRun(next(check for check in checks() if check.requirement.slug == "softmax.equation"), "fp32")
TARGET = Target("mine", SimpleNamespace(softmax=impl.softmax), Claims(), None, "")
SECONDS = 0.25


def test_what_the_first_example_loads_is_not_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    first = [3 * SECONDS]
    _change_examples(monkeypatch, lambda: _work(first.pop() if first else 0.0))
    assert len(survey(ROW, TARGET, "1", examples=5, seconds=SECONDS)) == 5


@pytest.mark.parametrize("given_up", [True, False])
def test_its_time_ends_also_where_every_example_is_given_up(monkeypatch: pytest.MonkeyPatch, given_up: bool) -> None:
    met: list[bool] = []

    def slow() -> None:
        met.append(True)
        _work(SECONDS / 4)
        if given_up:
            raise UnsatisfiedAssumption

    _change_examples(monkeypatch, slow)
    survey(ROW, TARGET, "1", examples=1000, seconds=SECONDS)
    assert 1 < len(met) <= 6, "its time goes by from the end of the first: four more, and the one that it ends in"


def _change_examples(monkeypatch: pytest.MonkeyPatch, first: Callable[[], None]) -> None:
    """Let every example begin with something else."""
    own = of_survey._example

    def changed(trial: of_survey._Watched, row: CheckRun, data: ConjectureData) -> object:
        trial.draw(st.integers())  # so that no two examples are the same
        first()
        return own(trial, row, data)

    monkeypatch.setattr(of_survey, "_example", changed)


def _work(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_a_row_that_failed_is_surveyed_until_it_fails() -> None:
    calls: list[object] = []

    def softmax(z: Tensor, axis: int = -1) -> Tensor:
        calls.append(z)
        return impl.softmax(z, axis) * (1.0 if len(calls) % 1000 < 30 else 1.5)

    target = replace(TARGET, implementation=SimpleNamespace(softmax=softmax))
    assert not failing(survey(ROW, target, "1", examples=10, seconds=SECONDS))
    calls.clear()
    found = survey(ROW, target, "1", examples=10, seconds=20 * SECONDS, until_failed=60)
    assert len(failing(found)) == 1, "and no further"
