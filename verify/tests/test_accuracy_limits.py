"""Limits of accuracy in halves are data: each was measured, and none is wider than what went before."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from veriformer.spec.arithmetic import FORMATS
from veriformer.verify.families.accuracy import BULKY, _note, pooled
from veriformer.verify.families.accuracy_limits import UNMEASURED, by_chance, measured
from veriformer.verify.judging.judge import Reference, RunStatistics, SignedErrors, SquaredError, Violation

EXAMPLES = 52
"""Of a row in the profile default."""


@pytest.mark.parametrize("operation", [operation.name for operation in BULKY])
def test_every_limit_was_measured(operation: str) -> None:
    known = measured(operation, "result")
    assert known is not UNMEASURED
    assert known.limit(EXAMPLES) <= UNMEASURED.limit(EXAMPLES)
    assert known.leaning < 3


def test_what_was_not_measured_is_held_to_no_more_than_its_size() -> None:
    assert measured("softmax", "gradient of nothing") is UNMEASURED


def _row(*multiples: float) -> RunStatistics:
    """A row whose examples had these mean square errors, over 1000 entries each, as multiples of what explains them."""
    found = RunStatistics(squared_errors={"result": [SquaredError(multiple, 1000) for multiple in multiples]})
    none = np.zeros(0)
    found.signed_errors = {"result": [SignedErrors(none, none, (none,), separate=True)]}
    return found


def test_one_example_is_too_much_among_many_that_are_not() -> None:
    pooled("attention", _row(*[1.0] * 8))
    with pytest.raises(Violation, match="of one of 8 examples"):
        pooled("attention", _row(*[0.01] * 7, 40.0))


def test_a_little_too_much_in_every_example_is_too_much_together() -> None:
    with pytest.raises(Violation, match="root mean square error over 8 examples"):
        pooled("rope", _row(*[6.0] * 8))


def test_few_entries_may_differ_more() -> None:
    assert by_chance(1) > 100 > by_chance(4) > by_chance(100) > 1


@pytest.mark.parametrize(("off_by", "counts"), [(0.5, False), (200.0, True)])
def test_what_single_precision_may_be_off_by_is_no_loss_to_a_half(off_by: float, counts: bool) -> None:
    """Results far below their bound, such as tails of an activation: the plain formula may give them all the same."""
    exact, bound = np.full(100, 1e-9), np.full(100, 1e-7)
    trial = SimpleNamespace(statistics=RunStatistics(), effective=[])
    _note(trial, FORMATS["bf16"], "result", exact + off_by * bound, Reference(exact, bound), [exact * 1.001], {})  # type: ignore[arg-type]
    (found,) = trial.statistics.squared_errors["result"]
    assert (found.multiple > 1) == counts
