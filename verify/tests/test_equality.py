"""Two results that are equal over the reals, and a result that is the same everywhere."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from veriformer.verify.judging.judge import Reference, Violation
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.equality import assert_not_constant

INF = float("inf")
EXACT = Reference(np.array([-3.0, 5.0]), np.array([0.5, 0.5]))


def assert_true(condition: bool, message: str, *_: Any) -> None:
    if not condition:
        raise Violation(message)


def judge(*values: float) -> None:
    observed = Observation(torch.tensor(values), "result")
    assert_not_constant(cast(Trial, SimpleNamespace(assert_true=assert_true)), observed, EXACT, "result")


def test_a_constant_is_refused_whose_exact_values_lie_apart() -> None:
    with pytest.raises(Violation, match="are equal and may not be"):
        judge(1.0, 1.0)


def test_entries_that_overflowed_alike_are_no_constant() -> None:
    judge(INF, INF)
