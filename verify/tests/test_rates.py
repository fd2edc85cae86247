"""A rate of dropout may be counted in steps of 1/256, if what is kept is grown by the rate that it has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.negative_controls.common import GOOD
from tests.negative_controls.real import rate_in_a_byte, rate_in_a_byte_alone
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import Profile
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import Result, Status
from veriformer.verify.targets.loading import wrap

PROFILE = Profile(name="rates", examples=5, shrinks=0, timeout_s=300)


def dropping_in_steps(x: Any, p: float, **options: Any) -> Any:
    return rate_in_a_byte(lambda x, dropout_p, **more: GOOD.dropout(x, dropout_p, **more), x, dropout_p=p, **options)


def found(rounding: Any, law: str) -> Status:
    return judged(rounding, law).status


def judged(rounding: Any, law: str) -> Result:
    attention = lambda *args, **options: rounding(GOOD.attention, *args, **options)  # noqa: E731
    mine = wrap(SimpleNamespace(attention=attention, dropout=dropping_in_steps))
    check = next(check for check in checks() if check.requirement.slug == law)
    return run_check(CheckRun(check, "fp32"), mine, PROFILE, "0", {})


@pytest.mark.parametrize("law", ["attention.dropout_scale", "attention.dropout_rate", "attention.dropout_gradient"])
def test_a_rate_in_steps_that_its_scale_fits_is_admitted(law: str) -> None:
    result = judged(rate_in_a_byte, law)
    assert result.status is Status.PASS
    assert "is rounded to" in str(result.message)


@pytest.mark.parametrize("law", ["dropout.scale", "dropout.rate"])
def test_so_it_is_for_dropout_itself(law: str) -> None:
    assert found(rate_in_a_byte, law) is Status.PASS


def test_a_rate_in_steps_under_another_scale_is_not() -> None:
    assert found(rate_in_a_byte_alone, "attention.dropout_rate") is Status.FAIL
