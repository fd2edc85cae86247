"""Causes of calls that differ: finding, weight and condition."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.comparison.corpus import candidate_file
from tests.comparison.test_judgement import given, known
from veriformer.spec.requirement import Weight
from veriformer.verify.comparison.case import Case
from veriformer.verify.comparison.causes import Cause, causes, condition
from veriformer.verify.comparison.chance import moments
from veriformer.verify.comparison.judgement import Evidence, Observed, judge
from veriformer.verify.comparison.subject import Objects, Prepared, load_subject

PLAIN = Case(values="gaussian", seed=1)


def concluded(off: dict[str, float]) -> list[Cause]:
    """The causes where calls in these formats are off by these relative errors, which are alike at arguments nearby."""
    found = Observed("mine", "theirs", None, "cpu", Path(), similarity=1.0)
    for dtype, error in off.items():
        value = torch.linspace(1, 2, 50, dtype=getattr(torch, dtype))
        found.cases[dtype] = PLAIN.but(dtype=None if dtype == "float32" else dtype)
        found.references[dtype] = known(value, float(torch.finfo(value.dtype).eps))
        judged = judge(found.references[dtype], given(value * (1 + error)), 50)
        found.evidence.append(Evidence(dtype, found.cases[dtype], "first", judged))
    return causes(found)


@pytest.mark.parametrize(
    ("off", "weight"),
    [
        ({"float32": 0.0, "float64": 2.0**-25}, Weight.IMPRECISE),
        ({"float32": 0.0, "float64": 2.0**-18}, Weight.WRONG),
        ({"float32": 2.0**-15, "float64": 2.0**-15}, Weight.WRONG),
    ],
)
def test_a_constant_of_single_precision_is_told_as_precision(off: dict[str, float], weight: Weight) -> None:
    (found,) = concluded(off)
    assert found.weight is weight
    if weight is Weight.IMPRECISE:
        assert "as float32 has" in found.what
        assert found.when == "in float64"


def test_a_number_that_is_ignored_is_named_by_its_place() -> None:
    numbers = [PLAIN.but(scalar=place) for place in range(3)]
    assert condition(numbers[2:], [PLAIN, *numbers[:2]]).words == "with another value of number 3 among the arguments"


def test_a_candidate_that_raises_where_random_numbers_are_drawn_is_told(tmp_path: Path) -> None:
    subject = load_subject(str(candidate_file("wrong", "mlp_dropout__raises_in_training")), ("ModelNew",))
    torch.save({"built": {}, "used": {}}, tmp_path / "weights key.pt")
    prepared = Prepared("given", Case(), ([torch.ones(2, 4)], {}), ([4, 3, 0.5], {}), "key")
    raised = moments(Objects(subject, tmp_path), prepared)["error"]
    assert raised.startswith("TypeError: bernoulli()")
    (found,) = causes(Observed("mine", "theirs", None, "cpu", tmp_path, raised=raised))
    assert (found.slug, found.weight) == ("raises", Weight.WRONG)
    assert found.when == "in calls that draw random numbers"
