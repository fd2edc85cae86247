"""What the plugins of a run share, be it of rows or of mutants: one test item for each thing that is to be run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import pytest

T = TypeVar("T")


class Collects(ABC, Generic[T]):
    """Gives the suite's one test function something to call for each thing that is to be run."""

    @abstractmethod
    def items(self) -> Iterable[tuple[str, T]]:
        """What is to be run, each with the identifier of its item, the same in every process."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One item for each."""
        metafunc.parametrize("row", [pytest.param(self.caller(x), id=name) for name, x in self.items()])

    def caller(self, x: T) -> Callable[[pytest.Item], None]:
        """What the test function calls for this one; nothing, in a process that only plans."""
        return lambda item: None


class InterruptMixin:
    """Tells an interruption by the user from pytest's own, which has the same exit status."""

    interrupted = False

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note that it was the user."""
        self.interrupted = not excinfo.errisinstance(pytest.Session.Interrupted)
