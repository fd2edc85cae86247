"""Controller of a comparison: it runs no foreign code, sends jobs to processes, and reads their records."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from veriformer.verify.results.foreign import last_line
from veriformer.verify.targets.error import TargetError

RESTARTS = 8
"""Maximum number of starts of a candidate that ends its process, each with the calls that are left."""

WITHIN = "VERIFORMER_WITHIN_COMPARISON"
"""Set in the environment of every process that loads what is compared."""

_GRACE_S = 90.0
"""Seconds that a job may take beyond its budget before it is ended."""


@dataclass
class Done:
    """A finished job. found: its record; None where it ended earlier.

    late: whether it was ended for the time it took. starved: whether it had no processor for most of that.
    """

    out: Path
    found: dict[str, Any] | None
    late: bool = False
    starved: bool = False
    status: int = 0
    said: str = ""

    def record(self, name: str) -> dict[str, Any] | None:
        """Return what it wrote of a call; None where it wrote nothing."""
        file = self.out / f"{name}.pt"
        return read(file) if file.is_file() else None


@dataclass
class Ran:
    """Results of the processes of a candidate: a record for each call, by name, and the facts beside the calls."""

    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)
    moments: dict[str, dict[str, Any]] = field(default_factory=dict)


class Session:
    """Jobs in processes that are forked from one that has imported PyTorch already."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.folder = Path(tempfile.mkdtemp(prefix="veriformer-"))
        self.count = 0
        # What a compiler leaves half written, when its process is ended, is met by nobody else.
        self.compiled = self.folder / "compiled"
        environment = {
            **os.environ,
            WITHIN: "1",
            "TORCHINDUCTOR_CACHE_DIR": str(self.compiled),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        self.server = subprocess.Popen(
            [sys.executable, "-m", "veriformer.verify.comparison.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a person's Ctrl-C reaches this process alone
            env=environment,
            cwd=self.folder,
        )

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        with contextlib.suppress(OSError):
            self.server.stdin.close()
        if error is not None:
            self.server.terminate()
        self.server.wait()
        self.server.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def job(self, kind: str, budget: float, **given: Any) -> Done:
        """Run one job to its end. budget: seconds after which it begins nothing more."""
        self.count += 1
        out = Path(tempfile.mkdtemp(prefix=f"{self.count} ", dir=self.folder))
        job = {
            "kind": kind,
            "out": str(out),
            "said": str(out / "said"),
            "directory": str(Path.cwd()),
            "device": self.device,
            "budget": budget,
            "seconds": budget + _GRACE_S,
            **given,
        }
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(json.dumps(job) + "\n")
        self.server.stdin.flush()
        answer = self.server.stdout.readline()
        if not answer:
            raise RuntimeError("the process that starts jobs has ended")
        ended = json.loads(answer)
        if ended["late"]:
            shutil.rmtree(self.compiled, ignore_errors=True)
        file, error = out / "found.json", out / "said.error"
        found = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
        if found and "unusable" in found:
            raise TargetError(found["unusable"])
        said = error.read_text(encoding="utf-8") if error.is_file() else ""
        return Done(out, found, ended["late"], ended["starved"], ended["status"], said)

    def prepare(self, reference: str, inputs: str | None, budget: float, **given: Any) -> tuple[Path, dict[str, Any]]:
        """Prepare cases; return their folder and the facts on the reference. Raises TargetError where it cannot be
        prepared.
        """
        done = self.job("prepare", budget, spec=reference, inputs=inputs, **given)
        if done.found is None:
            why = "took too long" if done.late else f"ended its process (exit status {done.status}) {_last(done.said)}"
            raise TargetError(f"target {reference!r}: the reference {why}")
        return done.out, done.found

    def evaluate(self, reference: str, folder: Path, cases: Sequence[str], budget: float, **given: Any) -> Done:
        """Run the reference on these cases."""
        return self.job("reference", budget, spec=reference, folder=str(folder), cases=list(cases), **given)

    def candidate(self, spec: str, folder: Path, cases: Sequence[str], budget: float, **given: Any) -> Ran:
        """Run the candidate on these cases; a call that ends its process costs itself, not those after it."""
        ran, left, until = Ran(), list(cases), time.monotonic() + budget
        histories = given.pop("histories", None)
        for _ in range(RESTARTS):
            given_now = {**given, "histories": histories} if histories else given
            left_s = max(1.0, until - time.monotonic())
            done = self.job("candidate", left_s, spec=spec, folder=str(folder), cases=left, **given_now)
            begun = (done.out / "begun").read_text("utf-8").splitlines() if (done.out / "begun").is_file() else []
            for name in begun:
                record = done.record(name)
                if record is not None or not done.starved:  # of a busy machine nothing is said
                    ran.records[name] = record or _ended(done)
            for file in done.out.glob("*.moments.pt"):
                ran.moments[file.name.removesuffix(".moments.pt")] = read(file)
            if done.found is not None:
                ran.found = _joined(ran.found, done.found)
                break
            if not begun:
                how = "took too long" if done.late else f"ended its process (exit status {done.status})"
                raise TargetError(f"target {spec!r}: {how} while it was loaded: {_last(done.said)}")
            if begun[-1] in left:
                left = left[left.index(begun[-1]) + 1 :]
            else:
                left, histories = [], None
            if time.monotonic() > until:
                break
        return ran


def read(file: Path) -> dict[str, Any]:
    """Read a record that a job has written."""
    found: dict[str, Any] = torch.load(file, weights_only=True)
    return found


def _joined(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    return {**b, **{key: {**a[key], **b[key]} for key in ("changes", "replaced", "pairs") if key in a}}


def _ended(done: Done) -> dict[str, Any]:
    how = "hangs" if done.late else "ends"
    said = "does not come back" if done.late else f"ends its process (exit status {done.status})"
    return {"results": {}, "types": {}, "error": [how, said]}


def _last(said: str) -> str:
    return last_line(said)[:300]
