"""A row whose examples cannot tell right from wrong draws on for a while, and is vacuous only then."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

from veriformer.spec.requirement import Kind, Requirement
from veriformer.verify.catalogue import Check
from veriformer.verify.judge import Reference
from veriformer.verify.loading import load
from veriformer.verify.profiles import PROFILES
from veriformer.verify.results import Status
from veriformer.verify.row import PATIENCE, Row, run_row
from veriformer.verify.strategies import seeds
from veriformer.verify.trial import Trial

PLANNED = PROFILES["quick"].examples
SHARP, BLUNT = Reference(np.array(1.0), np.array(0.5)), Reference(np.array(1.0), np.array(2.0))


def ran(blunt: int) -> tuple[Status, int, float | None]:
    """Status, examples and vacuous share of a row whose first examples are blunt, so many of them."""
    turns = count()

    def body(trial: Trial) -> None:
        trial.draw(seeds())
        trial.effective.append((SHARP if next(turns) >= blunt else BLUNT).effective)

    requirement = Requirement(
        slug="softmax.test", operation="softmax", statement="a law", float_form="the same", kind=Kind.LAW
    )
    result = run_row(Row(Check(requirement=requirement, body=body), "fp64"), load("torch"), PROFILES["quick"], "0", {})
    return result.status, result.examples, result.vacuous_share


def test_a_row_of_sharp_examples_runs_as_many_as_planned() -> None:
    assert ran(0) == (Status.PASS, PLANNED, 0.0)


def test_a_row_of_blunt_examples_is_vacuous_in_the_end() -> None:
    assert ran(10**6) == (Status.VACUOUS, PATIENCE * PLANNED, 1.0)


@pytest.mark.parametrize("blunt", [PLANNED // 2, PLANNED, 2 * PLANNED])
def test_unlucky_examples_are_made_up_for(blunt: int) -> None:
    status, examples, share = ran(blunt)
    assert (status, share) == (Status.PASS, blunt / examples)
    assert examples == PLANNED * -(-(blunt + PLANNED // 2) // PLANNED)
