"""Limits of accuracy in halves are data: each was measured, and none is wider than what went before."""

from __future__ import annotations

import pytest

from veriformer.verify.families.accuracy import BULKY
from veriformer.verify.families.accuracy_limits import UNMEASURED, measured

EXAMPLES = 52
"""Of a row in the profile default."""


@pytest.mark.parametrize("operation", [operation.name for operation in BULKY])
def test_every_limit_was_measured(operation: str) -> None:
    known = measured(operation, "result")
    assert known is not UNMEASURED
    assert known.limit(EXAMPLES) <= UNMEASURED.limit(EXAMPLES)
    assert known.bias < 3


def test_what_was_not_measured_is_held_to_no_more_than_its_size() -> None:
    assert measured("softmax", "gradient of nothing") is UNMEASURED
