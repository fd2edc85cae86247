"""Any optimizer is judged by laws: right ones hold, and each fault fails the due law first."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.trained import FAULTS, Right, SharedCount
from veriformer.spec.requirements.any_optimizer import REQUIREMENTS
from veriformer.verify import check
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import Profile
from veriformer.verify.forms.binding import bind
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.results import Result, Status
from veriformer.verify.targets.loading import wrap

PROFILE = Profile(name="red", examples=12, shrinks=0, timeout_s=60)
FEW = Profile(name="few", examples=4, shrinks=0, timeout_s=60)
"""Profile of rows that are to hold, of which there are many."""
ROWS = [row for row in checks() if row.operation == "optimizer"]
SETTLED = {Status.PASS, Status.NOT_APPLICABLE}


def rows_of(make: Any, dtype: str = "fp64", until: str = "") -> dict[str, Result]:
    """Return the results of a factory's rows in their order, up to that of a law or the first before it to fail."""
    target, found = wrap(SimpleNamespace(optimizer=make, CLAIMS={})), {}
    for row in ROWS:
        name = row.requirement.slug.partition(".")[2]
        if dtype in row.dtypes:
            profile = FEW if until and name != until else PROFILE
            found[name] = run_check(CheckRun(row, dtype), target, profile, "red", {})
            if until and (name == until or found[name].status not in SETTLED):
                break
    return found


def test_each_law_has_a_fault_that_breaks_it() -> None:
    assert set(FAULTS.values()) == {r.slug.partition(".")[2] for r in REQUIREMENTS}


@pytest.mark.whole
@pytest.mark.parametrize("dtype", ["fp64", "fp32"])
def test_a_right_one_holds(dtype: str) -> None:
    found = rows_of(bind("optimizers/other_class", Right), dtype)
    assert {name: row.message for name, row in found.items() if row.status is not Status.PASS} == {}


THEIRS = (
    *("ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam", "RAdam"),
    *("RMSprop", "Rprop", "SGD", "SparseAdam"),
)
KNOWN = {"Adagrad": {"group_options"}, "NAdam": {"resume"}}
"""Every group of Adagrad starts with the ``initial_accumulator_value`` of the constructor. The product of the momenta
of NAdam is kept in float32, and becomes float64 where it is loaded for parameters in that."""


@pytest.mark.whole
@pytest.mark.parametrize("name", THEIRS)
def test_those_of_pytorch_hold_but_for_what_is_known(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.PROFILE", FEW)
    kind = getattr(torch.optim, name)

    def optimizer(params: Any, **options: Any) -> Any:
        return kind(params, **options)

    optimizer.__signature__ = inspect.signature(kind)  # type: ignore[attr-defined]
    found = rows_of(optimizer)
    wrong = {row for row, result in found.items() if result.status not in SETTLED}
    assert wrong <= KNOWN.get(name, set()), {row: found[row].message for row in wrong}
    assert found["contract"].status is Status.PASS


def test_an_instance_is_judged_with_the_options_it_was_built_by() -> None:
    given = torch.optim.RMSprop([torch.ones(2, requires_grad=True)], lr=0.25, momentum=0.5)
    (pin,) = recognise(given).pins
    assert (pin.operation, pin.form) == ("optimizer", "optimizers/other_class")
    made = bind(pin.form, given)([torch.ones(3, requires_grad=True)])
    assert (made.defaults["lr"], made.defaults["momentum"]) == (0.25, 0.5)


class Noisy(Right):
    """Every first step of a parameter is drawn."""

    def one_step(self, p: torch.Tensor, g: torch.Tensor, group: Any) -> None:
        super().one_step(p, g if self.state[p] else torch.randn_like(g), group)


@pytest.mark.whole
def test_what_draws_numbers_is_not_asked_for_an_order_of_parameters() -> None:
    found = rows_of(bind("optimizers/other_class", Noisy))
    assert {name: row.message for name, row in found.items() if row.status not in SETTLED} == {}
    assert found["order"].status is found["own_steps"].status is Status.NOT_APPLICABLE
    assert found["resume"].status is Status.PASS


def test_what_cannot_be_built_is_listed_with_its_reason() -> None:
    class Wrapped(torch.optim.Optimizer):
        def __init__(self, params: Any, inner: Any) -> None:
            super().__init__(params, {"inner": inner})

    found = recognise(Wrapped)
    assert not found.pins
    assert "demands 'inner'" in found.refused[0].reason


@pytest.mark.whole
def test_a_violation_becomes_a_finding_with_a_script() -> None:
    results = check(SharedCount, only=["optimizer.own_steps"], dtype=["fp64"], profile="quick")
    (finding,) = results.findings
    assert (finding.operation, finding.weight) == ("optimizer", "fragile")
    assert "drive_any_optimizer(target" in results.violations[0].counterexample.script


@pytest.mark.whole
@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.__name__)
def test_a_fault_is_found_by_the_due_law_first(kind: Any) -> None:
    found = rows_of(bind("optimizers/other_class", kind), until=FAULTS[kind])
    *_, (name, row) = found.items()
    assert (name, row.status) == (FAULTS[kind], Status.FAIL), (name, row.status, row.message)
    assert row.counterexample is not None
