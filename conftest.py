"""Options and fixtures for the tests of all packages."""

import contextlib
import gc
import os
import sys
from collections.abc import Iterator

import pytest

# Tensors of tests are small: threads that wait for each other cost more than they bring. PyTorch reads this where it
# is imported first, and so do the processes that tests start.
os.environ["OMP_NUM_THREADS"] = "1"


def pytest_collection_finish() -> None:
    """Exclude imported and collected objects from later garbage collections, which runs inside of tests trigger."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the limit of the first tier: ``--limit-s``."""
    said = "fail a test that takes more seconds of the processor, unless it is marked slow, with its reason, or whole"
    parser.addoption("--limit-s", type=float, default=float("inf"), metavar="SECONDS", help=said)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test of the first tier that takes longer than the limit, itself and the processes that it has waited for.

    Fixtures are not counted, for those of a module are made once. Nor is what a first call imports or computes for
    others: a test that is over the limit is run again.
    """
    began, limit = _processor_s(), item.config.getoption("limit_s")
    yield
    if _processor_s() - began <= limit or any(map(item.get_closest_marker, ("slow", "whole"))):
        return
    began = _processor_s()
    with contextlib.suppress(Exception, pytest.fail.Exception):  # it may find its own files
        item.runtest()
    if (taken := _processor_s() - began) > limit:
        advice = "share a fixture, draw less, mark it slow with its reason, or whole"
        pytest.fail(f"took {taken:.1f} s of the processor, expected at most {limit:g}: {advice}", pytrace=False)


def _processor_s() -> float:
    """Return the seconds that this process, and those that it has waited for, had of the processor."""
    return sum(os.times()[:4])


@pytest.fixture(scope="session")
def _launcher():
    from tests.warm import launcher

    with launcher() as program:
        yield program


@pytest.fixture(scope="module")
def warm(_launcher):
    """Fork every ``sys.executable`` that a module starts from one process; see ``verify/tests/warm.py``."""
    interpreter, sys.executable = sys.executable, _launcher
    yield
    sys.executable = interpreter
