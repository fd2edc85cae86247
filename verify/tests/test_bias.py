"""Errors in halves: what leans one way is found where a mean square grants it, and rounding leans no way."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional

from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.families.accuracy import bias
from veriformer.verify.families.accuracy_limits import Measured
from veriformer.verify.judging.judge import SignedErrors
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import Result, Status
from veriformer.verify.targets.loading import wrap


def by_tanh_in_halves(x: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    """GELU as it is in fp32, and its approximation where nobody is thought to see the difference."""
    return functional.gelu(x, approximate=approximate if x.dtype.itemsize > 2 else "tanh")


def by_error_function_in_halves(x: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    """Right: every operation rounded to the dtype."""
    if approximate == "tanh":
        return functional.gelu(x, approximate=approximate)
    return 0.5 * x * (1 + torch.erf(x * 0.5**0.5))


def judged(kernel: object, dtype: str, profile: str) -> Result:
    check = next(c for c in checks() if c.requirement.slug == "gelu.accuracy")
    return run_check(CheckRun(check, dtype), wrap(SimpleNamespace(gelu=kernel)), PROFILES[profile], "bias", {})


@pytest.mark.whole
@pytest.mark.parametrize("profile", ["quick", "default"])
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_an_approximation_in_halves_alone_is_found(dtype: str, profile: str) -> None:
    result = judged(by_tanh_in_halves, dtype, profile)
    assert result.status is Status.FAIL
    assert "signed errors" in str(result.message)


@pytest.mark.whole
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_what_rounds_every_operation_to_the_dtype_is_admitted(dtype: str) -> None:
    assert judged(by_error_function_in_halves, dtype, "default").status is Status.PASS


def errors(shift: float, seed: int) -> SignedErrors:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(4000)
    return SignedErrors(x, rng.uniform(-1, 1, 4000) + shift * (x > 0.5), (rng.uniform(-1, 1, 4000),), separate=True)


@pytest.mark.whole
def test_chance_is_not_accused_and_a_lean_of_a_part_is() -> None:
    assert max(bias([errors(0.0, seed)]) for seed in range(200)) < 1
    assert min(bias([errors(0.9, seed)]) for seed in range(20)) > 1


def examples_with_one_error(shift: float, seed: int, count: int) -> list[SignedErrors]:
    """Each has one error in all of its entries, besides their own."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        x = rng.standard_normal(rng.integers(1, 2000))
        errors = rng.uniform(-1, 1) + 0.1 * rng.uniform(-1, 1, x.size) + shift
        found.append(SignedErrors(x, errors, (rng.uniform(-1, 1, x.size),), separate=False))
    return found


@pytest.mark.whole
def test_what_an_example_shares_is_not_counted_as_often_as_it_has_entries() -> None:
    assert max(bias(examples_with_one_error(0.0, seed, 12)) for seed in range(200)) < 1
    assert min(bias(examples_with_one_error(1.5, seed, 52)) for seed in range(20)) > 1


def test_the_limit_narrows_with_the_examples() -> None:
    known = Measured(error=1.2, scatter=0.1, one=1.0, bias=1.0, examples=8)
    assert known.limit(8) > known.limit(52) > 1.2
