"""All files of ordinary code, each judged as a whole run: minutes for some; ``nox -s field`` runs it, in parallel."""

from __future__ import annotations

import pytest

from tests.field_corpus import complaints, expected


@pytest.mark.parametrize("name", expected())
def test_a_file_is_judged_as_is_due(name: str) -> None:
    assert complaints(name) == []
