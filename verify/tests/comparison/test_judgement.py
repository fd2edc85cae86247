"""The measured tolerance: what any order of summation may give lies within, what is wrong does not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from veriformer.verify.comparison.arithmetic import Arithmetic
from veriformer.verify.comparison.judgement import judge
from veriformer.verify.operations.models.noise import Roundoff, factor

RUNS, UNITS = 16, 4.0


def spread(x: torch.Tensor, mode: type[Roundoff], **options: float) -> float:
    """Return the root mean square of the change of a sum under one roundoff in every operation."""
    runs = []
    for seed in range(RUNS):
        with mode(seed, **options):
            runs.append(x.sum().double())
    found = (torch.stack(runs) - x.double().sum()).square().mean().sqrt()
    return float(found)


def recursively(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(())
    for part in x:
        total = total + part
    return total


def test_a_sum_may_be_made_in_any_order() -> None:
    x = torch.rand(1024, generator=torch.Generator().manual_seed(0))
    off = abs(float(recursively(x).double() - x.double().sum()))
    allowed = factor(RUNS, 1) * spread(x, Arithmetic, amplitude=UNITS) / UNITS
    assert off <= allowed
    assert allowed < 1e-3 * float(x.sum())  # and yet a single number left out is seen
    # A kernel's own rounding says less than that of another order: this is why sums have an error of their own.
    assert spread(x, Arithmetic, amplitude=1.0) > 5 * spread(x, Roundoff)


def known(value: torch.Tensor, spread: float, most: float = 0.0) -> dict[str, Any]:
    """Return the record of a reference's call that gave this value."""
    record = {"results": {"": value}, "types": {}, "error": None}
    return {
        "record": record,
        "exact": {"result": value.double()},
        "spread": {"result": torch.full_like(value, spread, dtype=torch.float64)},
        "most": {"result": torch.full_like(value, most, dtype=torch.float64)},
        "runs": RUNS,
    }


def given(value: Any, **more: Any) -> dict[str, Any]:
    return {"results": {"": value}, "types": {}, "error": None, **more}


def test_what_is_beyond_the_noise_is_found_and_what_is_within_is_not() -> None:
    value = torch.linspace(1, 2, 50)
    reference = known(value, 1e-6)
    limit = factor(RUNS, 50) * 1e-6
    assert not judge(reference, given(value + 0.5 * limit), 50).differences
    off = value.clone()
    off[17] += 3 * limit
    (found,) = judge(reference, given(off), 50).differences
    assert (found.kind, found.wrong, found.worst[0][0]) == ("values", 1, (17,))
    power = judge(reference, given(value), 50).power
    assert power is not None
    assert 0.8 < power * 1.5 / limit < 1.2


def test_a_step_nearby_excuses_what_a_perturbed_run_has_given() -> None:
    value = torch.ones(4)
    assert judge(known(value, 1e-6), given(value + 1), 4).differences
    assert not judge(known(value, 1e-6, most=1.5), given(value + 1), 4).differences


@pytest.mark.parametrize(
    ("other", "kind"),
    [
        (torch.ones(4, 1), "shape"),
        (torch.ones(4, dtype=torch.float64), "dtype"),
        (torch.full((4,), float("nan")), "not finite"),
        (None, "type"),
    ],
)
def test_other_forms_are_told_apart(other: Any, kind: str) -> None:
    assert [one.kind for one in judge(known(torch.ones(4), 1e-6), given(other), 4).differences] == [kind]


def test_zeros_are_not_taken_for_small_numbers() -> None:
    value = torch.full((1000,), 2.5e-6)
    (found,) = judge(known(value, 1e-13), given(torch.zeros(1000)), 1000).differences
    assert found.wrong == 1000


@pytest.mark.parametrize("kind", ["unfinished", "overwritten", "changed", "aliases"])
def test_what_becomes_of_memory_is_told(kind: str) -> None:
    seen = {"unfinished": [""], "overwritten": [""], "changed": {"argument 0": torch.ones(1)}}
    more = {kind: seen.get(kind, [["", "argument 0"]])}
    value = torch.ones(4)
    found = judge(known(value, 1e-6), given(value, **more), 4).differences
    assert [one.kind for one in found] == [{"unfinished": "late", "aliases": "alias"}.get(kind, kind)]
