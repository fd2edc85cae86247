"""A process that loads a target and then probes it, as its parent sees it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from veriformer.verify.targets.error import TargetError
from veriformer.workers.processes import of_worker

LOADING_S = 240.0
GO = "load\n"
"""The line that the process waits for before it loads the target."""

_EVERY_S = 0.02


@dataclass(frozen=True)
class Asked:
    """Questions about a target that is loaded. seconds: those that an operation that does not come back may take; None
    for as many as is usual. recognised: what another process has recognised of the target."""

    device: str
    formats: Sequence[str]
    seconds: float | None = None
    recognised: Mapping[str, Any] | None = None


class Look:
    """The process. It ends with its context."""

    def __init__(self, spec: str) -> None:
        self._spec = spec
        self._loaded = False
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="veriformer-")))
            self._file, self._said = folder / "found", folder / "said"
            said = stack.enter_context(self._said.open("wb"))  # no pipe, which a target might fill
            self._process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "veriformer.verify.engine.looking", spec, str(self._file)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    encoding="utf-8",
                    env={**of_worker(), "PYTHONIOENCODING": "utf-8"},
                )
            )
            stack.callback(self._process.kill)
            self._stack = stack.pop_all()

    def __enter__(self) -> Look:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def load(self, meanwhile: Callable[[], object] = lambda: None) -> Look:
        """Load the target, unless that is done, and return this. Raises TargetError where it cannot be loaded.

        meanwhile: called as soon as the target imports PyTorch, if it does; until then it may raise at no such cost.
        """
        if not self._loaded:
            try:
                self._tell(GO, lines=1, meanwhile=meanwhile)
            except BaseException:
                self._stack.close()
                raise
            self._loaded = True
        return self

    def describe(self, asked: Asked) -> Any:
        """Return the description of the loaded target; called once. Raises TargetError."""
        self._tell(json.dumps(asdict(asked)) + "\n", lines=2)
        return self._read()[1]

    def find_out(self, operations: Sequence[str]) -> list[Any]:
        """Return the lines that the process writes of these operations of the described target, to its end."""
        self._tell(json.dumps(operations) + "\n", lines=2)
        self._process.wait()
        return self._read()[2:]

    def _read(self) -> list[Any]:
        text = self._file.read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def _tell(self, words: str, lines: int, meanwhile: Callable[[], object] | None = None) -> None:
        """Give words to the process, and wait until it has written so many lines in all; its file is there before."""
        with contextlib.suppress(OSError):  # it may have ended, which is told below
            assert self._process.stdin is not None
            self._process.stdin.write(words)
            self._process.stdin.flush()
        latest = time.monotonic() + LOADING_S
        while self._written() < lines:
            if self._process.poll() is not None and self._written() < lines:
                raise TargetError(self._why_it_ended())
            if time.monotonic() > latest:
                raise TargetError(f"target {self._spec!r} did not finish loading within {LOADING_S:g} s")
            if meanwhile is not None and self._file.exists():
                meanwhile()
                meanwhile = None
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_EVERY_S)

    def _written(self) -> int:
        return self._file.read_bytes().count(b"\n") if self._file.exists() else 0

    def _why_it_ended(self) -> str:
        status, said = self._process.returncode, self._said.read_text(encoding="utf-8", errors="replace").strip()
        if status == 2 and said:
            return said.splitlines()[-1]
        return f"target {self._spec!r} ended its process while it was loaded (exit status {status})"
