"""Arm of a comparison: the source of its code, and a process that runs it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

_START = 120.0
"""Seconds until a process has loaded its target."""


class ArmError(ValueError):
    """The named arm cannot be compared; the message says why."""


class DiedError(Exception):
    """The process of an arm ended, or did not answer in time; the message says how."""


@dataclass(frozen=True)
class Arm:
    """label: what a person named. path: folders that come first on the module path. target: what is timed there."""

    label: str
    path: tuple[str, ...]
    target: str
    folder: str | None = None


def arm(word: str, target: str | None, unpacked: Path) -> Arm:
    """Return a checkout (a folder), a wheel, or a target. Raises ArmError.

    target: what to time in a folder or a wheel: a file relative to it, a module, an attribute; ``impl`` by default.
    """
    place = Path(word)
    if place.suffix == ".whl":
        if not place.is_file():
            raise ArmError(f"{word!r}: expected a wheel, found no file")
        folder = Path(tempfile.mkdtemp(dir=unpacked))
        with zipfile.ZipFile(place) as wheel:
            wheel.extractall(folder)
        return Arm(word, (str(folder),), target or "impl")
    if place.is_dir():
        folders = [place / "impl", place / "src", place]
        path = tuple(str(folder.resolve()) for folder in folders if folder.is_dir())
        return Arm(word, path, target or "impl", str(place.resolve()))
    if target is not None:
        raise ArmError(f"{word!r}: --target goes with a checkout or a wheel; expected a folder or a .whl file")
    return Arm(word, (), word)


class Process:
    """A fresh process of an arm. Use as a context, which it is ready in, and ends with."""

    def __init__(self, side: Arm, device: str = "cpu", clock: str = "wall") -> None:
        self._label = side.label
        own = [entry for entry in sys.path if entry and (Path(entry) / "veriformer").is_dir()]
        paths = [*side.path, *own, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        absolute = dict.fromkeys(str(Path(path).resolve()) for path in paths)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(absolute), "PYTHONDONTWRITEBYTECODE": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "veriformer.bench.timing.worker", side.target, device, clock],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=side.folder,
            text=True,
        )

    def __enter__(self) -> Process:
        try:
            about = self._read(_START)
            if "error" in about:
                raise ArmError(f"{self._label}: {about['error']}")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was not sent yet is lost with the process
                    pipe.close()

    def ask(self, request: Mapping[str, Any], timeout: float = 60.0) -> dict[str, Any]:
        """Return the answer to a request. Raises DiedError."""
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise DiedError(self._end()) from error
        return self._read(timeout)

    def _read(self, timeout: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(timeout):
                self._process.kill()
                raise DiedError(f"gave no answer within {timeout:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise DiedError(self._end())
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _end(self) -> str:
        status = self._process.wait()
        return f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
