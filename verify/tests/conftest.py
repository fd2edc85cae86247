"""What several tests of this package need: processes that have imported PyTorch and the suite before they start."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import pytest

from tests.warm import launcher


@pytest.fixture(scope="session")
def _launcher() -> Iterator[str]:
    with launcher() as program:
        yield program


@pytest.fixture(scope="module")
def warm(_launcher: str) -> Iterator[None]:
    """Whatever this module starts as ``sys.executable`` is forked from one process; see ``warm.py``."""
    interpreter = sys.executable
    sys.executable = _launcher
    with contextlib.ExitStack() as end:
        end.callback(setattr, sys, "executable", interpreter)
        yield
