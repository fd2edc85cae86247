"""Results of another kind than promised: every row comes to a verdict on the target, and none to an error of ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from veriformer import impl
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.judging.check import Check
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.judging.trial import Trial
from veriformer.verify.results import Result, Status
from veriformer.verify.results.domain import Domain
from veriformer.verify.targets.loading import wrap
from veriformer.verify.targets.target import Target

FEW = replace(PROFILES["quick"], examples=2, shrinks=2)

OPERATIONS = ("clip_grad_norm", "layer_norm")
"""A list of tensors, and parameters that may be left out."""


def each(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Any], Any]:
    """Change every tensor of a result."""

    def changed(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(changed(item) for item in value)
        return change(value) if isinstance(value, torch.Tensor) else value

    return changed


def longer(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x.reshape(-1), x.new_ones(1)])


RESULTS: dict[str, Callable[[Any], Any]] = {
    "longer": each(longer),
    "of a higher rank": each(lambda x: x.unsqueeze(0)),
    "a Python float": lambda value: 1.0,
    "None": lambda value: None,
    "a tuple": lambda value: (value, value),
    "empty": each(lambda x: x.new_empty(0)),
    "complex": each(lambda x: x.to(torch.complex64)),
    "NaN": each(lambda x: x * float("nan")),
}


def ran(check: Check, target: Target, dtype: str) -> Result:
    return run_check(CheckRun(check, dtype), target, FEW, "0", {})


@pytest.mark.whole
@pytest.mark.parametrize("kind", RESULTS)
def test_no_row_ends_in_an_error_of_ours(kind: str) -> None:
    def spoilt(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments, **options: RESULTS[kind](function(*arguments, **options))

    target = wrap(SimpleNamespace(**{name: spoilt(getattr(impl, name)) for name in OPERATIONS}))
    rows = [check for check in checks() if check.operation in OPERATIONS]
    found = [ran(check, target, "fp32" if "fp32" in check.dtypes else check.dtypes[0]) for check in rows]
    assert [(row.key, row.message) for row in found if row.status is Status.HARNESS_ERROR] == []
    of_values = [row for row in found if row.requirement.endswith((".equation", ".accuracy"))]
    assert {row.status for row in of_values} == {Status.FAIL}


def check_of(body: Callable[[Trial], None]) -> Check:
    (known,) = [check for check in checks() if check.requirement.slug == "rms_norm.equation"]
    return replace(known, property_test=body)


def undefined(trial: Trial) -> None:
    Reference(np.array([np.nan]), np.array([1.0]))


@pytest.mark.parametrize(("constants", "status"), [({"eps": 0.0}, Status.NOT_PROVIDED), ({}, Status.HARNESS_ERROR)])
def test_a_call_without_a_value_is_given_up_where_the_target_chose_the_constants(
    constants: dict[str, float], status: Status
) -> None:
    target = wrap(SimpleNamespace(rms_norm=impl.rms_norm)).within({"rms_norm": Domain(constants=constants)})
    row = ran(check_of(undefined), target, "fp64")
    assert row.status is status
    assert status is Status.HARNESS_ERROR or "of which the formula has no value with eps = 0.0" in str(row.message)


def test_a_row_of_which_no_call_is_admitted_is_not_exercised() -> None:
    row = ran(check_of(lambda trial: trial.assume(False)), wrap(SimpleNamespace(rms_norm=impl.rms_norm)), "fp64")
    assert (row.status, row.examples) == (Status.VACUOUS, 0)
