"""Models whose caches lie inside and are set up first are recognised, and judged through their caches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import Profile
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.results import Status
from veriformer.verify.targets.loading import wrap
from veriformer.verify.targets.source_files import module_of

HERE = Path(__file__).parent / "forms"
PROFILE = Profile(name="red", examples=14, shrinks=0, timeout_s=60)
ROWS = ("prefix", "cache_split", "cache_steps", "cache_branch")


def rows_of(file: str, name: str) -> dict[str, Status]:
    kind: Any = getattr(module_of(HERE / f"{file}.py"), name)
    target = wrap(kind)
    rows = [row for row in checks() if row.requirement.slug in [f"causal_lm.{name}" for name in ROWS]]
    found = {row.requirement.slug[10:]: run_check(CheckRun(row, "fp64"), target, PROFILE, "red", {}) for row in rows}
    return {name: row.status for name, row in found.items()}


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "told"), [("Transformer", "set up by setup_caches"), ("StartingTransformer", "its positions as start_pos")]
)
def test_they_are_recognised_and_hold(name: str, told: str) -> None:
    (pin,) = (pin for pin in recognise(module_of(HERE / "models_placed.py")).pins if pin.name == name)
    assert pin.operation == "causal_lm"
    assert any(told in one for one in pin.told), pin.told
    assert rows_of("models_placed", name) == dict.fromkeys(ROWS, Status.PASS)


@pytest.mark.whole
@pytest.mark.parametrize(("name", "wrong"), [("Transformer", "cache_steps"), ("StartingTransformer", "cache_split")])
def test_a_fault_of_a_cache_is_seen(name: str, wrong: str) -> None:
    assert rows_of("models_placed_faulty", name)[wrong] is Status.FAIL
