"""Every check was seen failing: for each law a small fault that it must catch.

A law that is one function over the records of many operations is seen failing on three of them.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.negative_controls import (
    attention,
    decisions,
    heads,
    rare,
    rare_training,
    real,
    scores,
    training,
)
from tests.negative_controls.common import GOOD, mixed, more, shifted
from veriformer.spec.requirements import REQUIREMENTS
from veriformer.verify.catalogue.checks import ALL
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import PROFILES, Profile
from veriformer.verify.judging.check import Check
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.mutants.combinators import (
    Fault,
    Operation,
    change_any_result,
    change_arguments,
    change_result,
    gradient_of,
    instead,
)
from veriformer.verify.results import Result, Status
from veriformer.verify.targets.kinds import MODELS, TRAINERS
from veriformer.verify.targets.loading import wrap

OTHERS = (*MODELS, *TRAINERS)
PROFILE = Profile(name="red", examples=60, shrinks=0, timeout_s=60)
FEW = replace(PROFILE, examples=PROFILES["quick"].examples)
"""Profile of rows that judge all their examples together, where few are enough: a fault ends the other rows at once."""


def modifies(op: Operation, *args: Any, **options: Any) -> Any:
    result = op(*args, **options)
    target = args[0][0] if isinstance(args[0], list) else args[0]
    with torch.no_grad():
        target.data.mul_(0.5).add_(1.0)
    return result


def ignores_strides(*args: Any, **options: Any) -> Any:
    def flat(x: Any) -> Any:
        if isinstance(x, list):
            return [flat(item) for item in x]
        if not isinstance(x, Tensor) or x.is_contiguous() or not x.is_floating_point():
            return x
        return x.as_strided(x.shape, torch.empty(x.shape).stride())

    return tuple(flat(x) for x in args), options


def accepts(op: Operation, *args: Any, **options: Any) -> Any:
    try:
        return op(*args, **options)
    except (ValueError, TypeError):
        return torch.zeros(())


def mumbles(op: Operation, *args: Any, **options: Any) -> Any:
    try:
        return op(*args, **options)
    except (ValueError, TypeError):
        raise ValueError("bad input") from None


def late(x: Tensor) -> Tensor:
    """The second tile of the last axis, or of the rows, comes one entry late."""
    rows = x.clone().reshape(-1, x.shape[-1]) if x.ndim > 1 else x.clone()[None]
    rows[:, 512:] = rows[:, 511:-1].clone() if x.shape[-1] > 512 else rows[:, 512:]
    rows[64:] = rows[63:-1].clone() if len(rows) > 64 else rows[64:]
    return rows.reshape(x.shape)


def by_tiles(op: Operation, x: Any, *args: Any, **options: Any) -> Any:
    several = isinstance(x, Tensor) and x.ndim > 1
    return op(late(x), *args, **options) if several else late(op(x, *args, **options))


def particular(op: Operation, *args: Any, **options: Any) -> Any:
    if any(isinstance(value, np.generic) for value in (*args, *options.values())):
        raise TypeError("expected a Python number")
    return op(*args, **options)


def blurred(x: Tensor) -> Tensor:
    """Rounded to four bits."""
    m, e = torch.frexp(x.double())
    return torch.ldexp((m * 16).round() / 16, e).to(x.dtype)


IN_ANOTHER_DTYPE = change_result(lambda x: x.to(torch.float64 if x.dtype != torch.float64 else torch.float32))
FAMILIES: dict[str, Fault] = {
    "contract": IN_ANOTHER_DTYPE,
    "result_dtype": IN_ANOTHER_DTYPE,
    "equation": change_result(more),
    "gradient": gradient_of(0, shifted),
    "purity": instead(modifies),
    "layout": change_arguments(ignores_strides),
    "refusal": instead(accepts),
    "refusal_names_argument": instead(mumbles),
    "batch": change_result(mixed),
    "long": instead(by_tiles),
    "numpy_numbers": instead(particular),
    "accuracy": change_result(blurred),
}


LARGER = change_any_result(more)
"""Fault of every law that is in no table: the result is too large by a thirty-second."""


SPECIFIC = scores.SPECIFIC | attention.SPECIFIC | heads.SPECIFIC | training.SPECIFIC | decisions.SPECIFIC


def three(checks: list[Check]) -> list[Check]:
    """Return the first, the middle and the last of more than three."""
    return checks if len(checks) <= 3 else [checks[0], checks[len(checks) // 2], checks[-1]]


def functions(checks: Iterable[Check]) -> Iterator[list[Check]]:
    """Yield the checks of each law that are one function over the operation's record, one after the other."""
    found: dict[tuple[str, Any], list[Check]] = defaultdict(list)
    for check in checks:
        law = check.requirement.slug.partition(".")[2]
        test: Any = check.property_test
        body = inspect.getclosurevars(test).nonlocals.get("body") if inspect.isfunction(test) else None
        found[law, body or test].append(check)
    yield from found.values()


EACH = [check for found in functions(c for c in ALL if c.operation not in OTHERS) for check in three(found)]


def fault_of(slug: str) -> Fault:
    return SPECIFIC.get(slug) or FAMILIES.get(slug.partition(".")[2]) or LARGER


def test_the_table_has_requirements_alone() -> None:
    assert set(SPECIFIC) <= {r.slug for r in REQUIREMENTS if r.operation not in OTHERS}  # those have their own tables


@pytest.mark.whole
@pytest.mark.parametrize("check", EACH, ids=lambda check: check.requirement.slug)
def test_a_fault_is_seen(check: Check) -> None:
    fault = fault_of(check.requirement.slug)
    place = heads.ON_CACHES.get(check.requirement.slug, check.operation)
    result = judged(check, fault, place, "red", profile=PROFILE if check.finish is None else FEW)
    if result.status is not Status.FAIL:
        result = judged(check, fault, place, "red")
    assert result.status is Status.FAIL, f"{result.status}: {result.message}"


RARE = rare.RARE | rare_training.RARE | real.REAL


@pytest.mark.whole
@pytest.mark.parametrize("name", RARE)
def test_a_rare_fault_is_seen(name: str) -> None:
    slug, fault = RARE[name]
    check = next(check for check in ALL if check.requirement.slug == slug)
    # What one example in twenty shows is overlooked by one run of sixty in twenty, and not by three in turn.
    runs = (judged(check, fault, check.operation, seed) for seed in ("red", "again", "thrice"))
    assert any(result.status is Status.FAIL for result in runs)


@pytest.mark.parametrize("name", real.NARROW)
def test_a_fault_of_one_dtype_is_seen(name: str) -> None:
    slug, fault, dtype = real.NARROW[name]
    check = next(check for check in ALL if check.requirement.slug == slug)
    runs = (judged(check, fault, check.operation, seed, dtype=dtype) for seed in ("red", "again", "thrice"))
    assert any(result.status is Status.FAIL for result in runs)


def test_scores_beyond_half_precision_are_seen_in_half_precision() -> None:
    """Where no bound follows them, that all is finite still holds."""
    check = next(check for check in ALL if check.requirement.slug == "attention.range")
    result = judged(check, attention.SPECIFIC["attention.range"], "attention", "red", dtype="fp16")
    assert result.status is Status.FAIL
    assert "not finite" in (result.message or "")


def judged(
    check: Check, fault: Fault, place: str, seed: str, *, dtype: str | None = None, profile: Profile = PROFILE
) -> Result:
    broken = SimpleNamespace(**{**vars(GOOD), place: fault(getattr(GOOD, place))})
    dtype = dtype or ("fp32" if "fp32" in check.dtypes else check.dtypes[0])
    return run_check(CheckRun(check, dtype), wrap(broken), profile, seed, {})
