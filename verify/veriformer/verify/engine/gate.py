"""What keeps several processes from loading a target before one of them has: a target that raises does so once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

GO = "load\n"
"""The line that a process waits for before it loads the target."""

_EVERY_S = 0.02


class Gate:
    """Opened by the process that loads the target first; the others stand behind it."""

    def __init__(self, first: Gate | None = None) -> None:
        self._first = first
        self._told = threading.Event()
        self._loaded = False

    def behind(self) -> Gate:
        """Return the gate of another process, which is passed once this one's has loaded the target."""
        return Gate(self)

    def passed(self) -> bool:
        """Return whether the target may be loaded, once that is known."""
        if self._first is None:
            return True
        self._first._told.wait()
        return self._first._loaded

    @contextmanager
    def watching(self, file: Path) -> Iterator[None]:
        """Let the others go on as soon as the file is there, and end where it is not by the end of the context."""
        ended = threading.Event()
        watch = threading.Thread(target=self._watch, args=(file, ended), daemon=True)
        watch.start()
        try:
            yield
        finally:
            ended.set()
            watch.join()

    def _watch(self, file: Path, ended: threading.Event) -> None:
        while not file.exists() and not ended.wait(_EVERY_S):
            pass
        self._loaded = file.exists()
        self._told.set()
