"""Code as people write it is recognised as what it is, read as it is meant, and no fault of it is a convention."""

from __future__ import annotations

import pytest

from tests.form_examples import FormCase, differences, form_cases


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=name, marks=() if case.first else pytest.mark.whole) for name, case in form_cases().items()],
)
def test_an_example_is_recognised_as_its_row_says(case: FormCase) -> None:
    assert differences(case.recognise(), case.row) == []
