"""What holds for the tests of all packages."""

import gc
import os
import sys

import pytest

# Tensors of tests are small: threads that wait for each other cost more than they bring. PyTorch reads this where it
# is imported first, and so do the processes that tests start.
os.environ["OMP_NUM_THREADS"] = "1"


def pytest_collection_finish() -> None:
    """What was imported and collected stays: runs inside of tests collect garbage, and need not look through it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def _launcher():
    from tests.warm import launcher

    with launcher() as program:
        yield program


@pytest.fixture(scope="module")
def warm(_launcher):
    """Whatever a module starts as ``sys.executable`` is forked from one process; see ``verify/tests/warm.py``."""
    interpreter, sys.executable = sys.executable, _launcher
    yield
    sys.executable = interpreter
