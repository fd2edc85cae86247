"""All pairs, each compared as a person would: minutes for all; ``nox -s pairs`` runs it, in parallel."""

from __future__ import annotations

import pytest

from tests.comparison.corpus import candidates, compared


@pytest.mark.parametrize("name", candidates("right"))
def test_a_right_candidate_is_not_accused(name: str) -> None:
    found = compared("right", name)
    assert found.exit_status == 0, [one.what for one in found.findings]
    assert found.seconds < 60


@pytest.mark.parametrize("name", candidates("wrong"))
def test_a_wrong_candidate_is_found_out(name: str) -> None:
    found = compared("wrong", name)
    assert found.exit_status == 1
    assert found.seconds < 60


@pytest.mark.parametrize("name", candidates("coarse"))
def test_a_coarse_candidate_is_called_imprecise(name: str) -> None:
    found = compared("coarse", name)
    assert found.exit_status == 0, [one.what for one in found.findings]
    assert "imprecise" in [one.weight.value for one in found.findings]
