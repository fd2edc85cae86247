"""A process that has imported PyTorch and forks one process for each job, so that every job begins afresh at once.

Jobs come as lines of JSON on standard input, and what became of each goes back as a line on standard output. User code
runs in the forked processes alone, and values travel by files.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

from veriformer.workers.stopwatch import kept_waiting

_PAUSE_S = 0.004


def _child(job: dict[str, Any]) -> None:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    said = os.open(job["said"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number, source in ((0, nowhere), (1, said), (2, said)):
        os.dup2(source, number)
    status = 70
    try:
        _run(job)
        status = 0
    except BaseException:
        Path(job["said"] + ".error").write_text(traceback.format_exc(limit=-8), encoding="utf-8")
    finally:
        os._exit(status)


def _run(job: dict[str, Any]) -> None:
    """Do a job, and write what came of it into its folder in one step: a process that ends meanwhile leaves no half."""
    from veriformer.verify.comparison import candidates, preparation, references
    from veriformer.verify.targets.error import TargetError

    kinds = {"prepare": preparation.prepare, "reference": references.evaluate, "candidate": candidates.run}
    warnings.simplefilter("ignore")
    os.chdir(job["directory"])
    job["until"] = time.monotonic() + job["budget"]
    try:
        found = kinds[job["kind"]](job)
    except TargetError as error:
        found = {"unusable": str(error)}
    file = Path(job["out"]) / "found.json"
    half = file.with_suffix(".half")
    half.write_text(json.dumps(found), encoding="utf-8")
    half.replace(file)


def _waited(child: int, seconds: float) -> dict[str, Any]:
    """Wait for a job and return its end; starved: whether one that is late has waited for a processor most of its
    time."""
    until, found, status, late, starved = time.monotonic() + seconds, 0, 0, False, False
    try:
        while not found and not late:
            found, status = os.waitpid(child, os.WNOHANG)
            late = not found and time.monotonic() > until
            starved = late and kept_waiting(child) > seconds / 2
            time.sleep(0 if found else _PAUSE_S)
    finally:  # ended from outside as well, and whatever it has started and left behind
        _end(child)
        if not found:
            _, status = os.waitpid(child, 0)
    return {"status": os.waitstatus_to_exitcode(status), "late": late, "starved": starved}


def _end(child: int) -> None:
    """End a job together with whatever it has started; it may not lead its own group yet."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.getsid(child) != child:
            os.kill(child, signal.SIGKILL)


def main() -> None:
    """Run jobs until standard input ends."""
    import torch._decomp  # (imported once, for all jobs)
    import torch._dynamo  # noqa: F401

    from veriformer.verify.comparison import candidates, preparation, references  # noqa: F401

    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(1))
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            _child(job)
        print(json.dumps(_waited(child, job["seconds"])), flush=True)


if __name__ == "__main__":
    main()
