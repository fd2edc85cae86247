"""A rate of dropout may be counted in steps of 1/256, if what is kept is grown by the rate that it has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.red import GOOD
from tests.red_real import rate_in_a_byte, rate_in_a_byte_alone
from veriformer.verify import check
from veriformer.verify.results import Status


def dropping_in_steps(x: Any, p: float, **options: Any) -> Any:
    return rate_in_a_byte(lambda x, dropout_p, **more: GOOD.dropout(x, dropout_p, **more), x, dropout_p=p, **options)


def found(rounding: Any, *laws: str) -> set[Status]:
    attention = lambda *args, **options: rounding(GOOD.attention, *args, **options)  # noqa: E731
    mine = SimpleNamespace(attention=attention, dropout=dropping_in_steps)
    results = check(mine, only=laws, dtype=["fp32", "bf16"])
    return {row.status for row in results.results if row.requirement in laws}


@pytest.mark.parametrize("law", ["attention.dropout_scale", "attention.dropout_rate", "attention.dropout_gradient"])
def test_a_rate_in_steps_that_its_scale_fits_is_admitted(law: str) -> None:
    assert found(rate_in_a_byte, law) == {Status.PASS}


@pytest.mark.parametrize("law", ["dropout.scale", "dropout.rate"])
def test_so_it_is_for_dropout_itself(law: str) -> None:
    assert found(rate_in_a_byte, law) == {Status.PASS}


def test_a_rate_in_steps_under_another_scale_is_not() -> None:
    assert Status.FAIL in found(rate_in_a_byte_alone, "attention.dropout_rate")
