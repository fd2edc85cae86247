"""A line on standard error that says what is being measured; nothing where that is no terminal."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.status import Status


class Progress:
    """Use as a context."""

    def __init__(self) -> None:
        self._status = Status("", console=Console(file=sys.stderr)) if sys.stderr.isatty() else None

    def __enter__(self) -> Progress:
        if self._status:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status:
            self._status.stop()

    def tell(self, what: str) -> None:
        """Say what is being measured."""
        if self._status:
            self._status.update(what)
