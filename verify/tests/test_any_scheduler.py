"""Any schedule of rates is judged by laws: PyTorch's hold, and each fault fails the due law first."""

from __future__ import annotations

from typing import Any

import pytest
from torch.optim import lr_scheduler as theirs

from veriformer.spec.requirements.schedules import LR_SCHEDULER
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import Profile
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.results import Result, Status
from veriformer.verify.targets.loading import wrap

PROFILE = Profile(name="red", examples=12, shrinks=0, timeout_s=60)


class Halving(theirs.LRScheduler):
    """Half the rate every third step, as a recursion and in closed form."""

    def get_lr(self) -> list[float]:
        now = [group["lr"] for group in self.optimizer.param_groups]
        return now if self.last_epoch % 3 or not self.last_epoch else [lr * 0.3 for lr in now]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * 0.3 ** (self.last_epoch // 3) for base in self.base_lrs]


class LateCount(Halving):
    def step(self, epoch: Any = None) -> None:
        super().step()
        self.last_epoch = max(0, self.last_epoch - (self.last_epoch > 4))


class StaleRates(Halving):
    def get_last_lr(self) -> list[float]:
        return [float(x) for x in self.base_lrs]


class Unsaved(Halving):
    """The count by which it decides is left out of the state."""

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        self.own = -1
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self.own += 1
        return [base * 0.3 ** (self.own // 3) for base in self.base_lrs]

    def state_dict(self) -> dict[str, Any]:
        return {key: value for key, value in super().state_dict().items() if key != "own"}

    _get_closed_form_lr = None  # type: ignore[assignment]


class SharedRate(Halving):
    def get_lr(self) -> list[float]:
        return [super(SharedRate, self).get_lr()[0] for _ in self.base_lrs]


class FormsPart(Halving):
    def _get_closed_form_lr(self) -> list[float]:
        return [base * 0.3 ** ((self.last_epoch + 1) // 3) for base in self.base_lrs]


class Staged(theirs.LRScheduler):
    """Up, level and down, by arguments that have no usual names."""

    def __init__(
        self, optimizer: Any, ramp_steps: int, hold_steps: int, final_lr_scale: float, floor_rate: float
    ) -> None:
        self.edges = ramp_steps, ramp_steps + hold_steps
        self.scale, self.floor = final_lr_scale, floor_rate
        super().__init__(optimizer)

    def get_lr(self) -> list[float]:
        start, end = self.edges
        by = min(1.0, (self.last_epoch + 1) / start) if self.last_epoch < end else self.scale
        return [max(self.floor, base * by) for base in self.base_lrs]


class Opaque(Staged):
    def __init__(self, optimizer: Any, phi: float) -> None:
        super().__init__(optimizer, 2, 2, phi, 0.0)


FAULTS = {
    LateCount: "contract",
    StaleRates: "contract",
    Unsaved: "resume",
    SharedRate: "groups",
    FormsPart: "closed_form",
}
RIGHT = (
    *(Halving, Staged, theirs.LambdaLR, theirs.MultiplicativeLR, theirs.StepLR, theirs.MultiStepLR, theirs.ConstantLR),
    *(theirs.LinearLR, theirs.ExponentialLR, theirs.PolynomialLR, theirs.CosineAnnealingLR, theirs.OneCycleLR),
    *(theirs.CyclicLR, theirs.CosineAnnealingWarmRestarts, theirs.ReduceLROnPlateau),
)


def rows_of(kind: Any, until: str = "") -> dict[str, Result]:
    target, found = wrap(kind), {}
    for check in checks():
        if check.operation == "lr_scheduler":
            name = check.requirement.slug.partition(".")[2]
            found[name] = run_check(CheckRun(check, "fp64"), target, PROFILE, "red", {})
            if until and found[name].status is Status.FAIL:
                break
    return found


def test_each_law_has_a_fault_that_breaks_it() -> None:
    assert set(FAULTS.values()) == {r.slug.partition(".")[2] for r in LR_SCHEDULER}


@pytest.mark.whole
@pytest.mark.parametrize("kind", RIGHT, ids=lambda kind: kind.__name__)
def test_right_ones_hold(kind: Any) -> None:
    (pin,) = recognise(kind).pins
    assert pin.operation == "lr_scheduler"
    found = rows_of(kind)
    settled = {Status.PASS, Status.NOT_APPLICABLE}
    assert {name: row.message for name, row in found.items() if row.status not in settled} == {}
    assert found["contract"].status is found["resume"].status is Status.PASS


def test_an_argument_whose_name_says_nothing_is_given_by_nobody() -> None:
    (refused,) = recognise(Opaque).refused
    assert "demands 'phi'" in refused.reason


@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.__name__)
def test_a_fault_is_found_by_the_due_law_first(kind: Any) -> None:
    *_, (name, row) = rows_of(kind, FAULTS[kind]).items()
    assert (name, row.status) == (FAULTS[kind], Status.FAIL), (name, row.status, row.message)
