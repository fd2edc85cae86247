"""The one test function of the suite: pytest runs it once per row that the plugin plans."""

from __future__ import annotations

from collections.abc import Callable

import pytest


def test_row(row: Callable[[pytest.Item], None], request: pytest.FixtureRequest) -> None:
    """Run one row; the plugin gives it and records what came of it."""
    row(request.node)
