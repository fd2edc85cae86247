"""Limit of the first tier of the project's own tests."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

CONFTEST = Path(__file__).parents[2] / "conftest.py"
TESTS = """
import functools
import time
import pytest

@functools.cache
def cached():
    busy()

def test_of_a_first_call():
    cached()

def busy():
    began = time.process_time()
    while time.process_time() - began < 0.1:
        pass

def test_short():
    time.sleep(0.1)

def test_long():
    busy()

@pytest.mark.slow("it counts")
def test_with_its_reason():
    busy()

@pytest.mark.whole
def test_of_the_second_tier():
    busy()

@pytest.fixture(scope="module")
def made():
    busy()

def test_of_a_fixture(made):
    pass
"""


def test_a_test_that_takes_longer_than_the_limit_fails_without_its_reason(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makeini("[pytest]\nmarkers =\n    slow\n    whole\n")
    pytester.makepyfile(TESTS)
    found = pytester.runpytest_inprocess("--limit-s=0.05", "-p", "no:cacheprovider")
    found.assert_outcomes(passed=5, failed=1)
    found.stdout.fnmatch_lines(["*took 0.1 s of the processor, expected at most 0.05*"])
