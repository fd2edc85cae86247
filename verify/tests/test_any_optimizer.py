"""Any optimizer is judged by laws: right ones hold, and each fault fails the due law first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.trained import FAULTS, Right
from veriformer.spec.requirements.any_optimizer import REQUIREMENTS
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.check_run import CheckRun, run_check
from veriformer.verify.engine.profiles import Profile
from veriformer.verify.forms.binding import bind
from veriformer.verify.results import Result, Status
from veriformer.verify.targets.loading import wrap

PROFILE = Profile(name="red", examples=12, shrinks=0, timeout_s=60)
ROWS = [check for check in checks() if check.operation == "optimizer"]
SETTLED = {Status.PASS, Status.NOT_APPLICABLE}


def rows_of(make: Any, dtype: str = "fp64", until: str = "", among: Any = None) -> dict[str, Result]:
    """The results of a factory's rows in their order, up to the first that does not hold."""
    target, found = wrap(SimpleNamespace(optimizer=make, CLAIMS={})), {}
    for check in ROWS:
        name = check.requirement.slug.partition(".")[2]
        if dtype in check.dtypes and (among is None or name in among):
            found[name] = run_check(CheckRun(check, dtype), target, PROFILE, "red", {})
            if until and found[name].status not in SETTLED:
                break
    return found


def test_each_law_has_a_fault_that_breaks_it() -> None:
    assert set(FAULTS.values()) == {r.slug.partition(".")[2] for r in REQUIREMENTS}


@pytest.mark.parametrize("dtype", ["fp64", "fp32"])
def test_a_right_one_holds(dtype: str) -> None:
    found = rows_of(bind("optimizers/other_class", Right), dtype)
    assert {name: row.message for name, row in found.items() if row.status is not Status.PASS} == {}


@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.__name__)
def test_a_fault_is_found_by_the_due_law_first(kind: Any) -> None:
    found = rows_of(bind("optimizers/other_class", kind), until=FAULTS[kind])
    *_, (name, row) = found.items()
    assert (name, row.status) == (FAULTS[kind], Status.FAIL), (name, row.status, row.message)
    assert row.counterexample is not None
