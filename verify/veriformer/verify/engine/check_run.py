"""Row execution: skip rows that need not run, guard against the target's side effects, return the Result.

A stored counterexample is run again first; memory that a failing row has left behind is given back.
"""

from __future__ import annotations

import contextlib
import ctypes
import difflib
import gc
import io
import resource
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from veriformer.verify.engine.profiles import Profile
from veriformer.verify.engine.search import Search
from veriformer.verify.judging import global_state, isolation
from veriformer.verify.judging.exceptions import RowTimeout
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import BLOCKING, Counterexample, Result, Status
from veriformer.verify.targets.target import Target

_MEMORY_STATISTICS = Path("/proc/self/statm")

_GROWN_BYTES = 2**28
"""Bytes that the process has to have grown by: collecting takes seconds where there is much to see."""

_memory_left = 0


def run_check(
    row: CheckRun,
    target: Target,
    profile: Profile,
    seed: str,
    finished: Mapping[str, Status],
    *,
    may_kill: bool = False,
    stored: str | None = None,
    searching: Callable[[CheckRun, Target, Profile], Search] | None = None,
) -> Result:
    """Run one row to its Result. Every outcome but the end of the process becomes a status.

    finished: statuses of rows already run, by key, to see whether a prerequisite failed. stored: the script of a known
    counterexample, run before anything is searched for. searching: another way to look for violations.
    """
    skipped = (
        _skipped_by_claims(row, target) or _skipped_by_domain(row, target) or _skipped_by_prerequisites(row, finished)
    )
    if skipped is not None:
        return skipped
    started = time.perf_counter()
    search, tell = (searching or Search)(row, target, profile), target.changed(row.check.operation)
    try:
        with (
            isolation.time_limit(profile.timeout_s, may_kill=may_kill),
            global_state.guarded(global_state.OF_ROWS, tell),
            global_state.environment(tell),
            global_state.streams(),
        ):
            found = None if stored is None else reproduces(stored)
            result = search.run(seed) if found is None else _known(row, found, str(stored))
    except RowTimeout as error:
        # what was found before the time was up stands, though it could not be made as small
        result = search.told(error) or search.stopped()
    if result.status is Status.FAIL:
        del search
        give_memory_back()
    return Result(**{**vars(result), "seconds": round(time.perf_counter() - started, 4)})


def _known(row: CheckRun, found: str, script: str) -> Result:
    example = Counterexample(arguments={}, observed=None, exact=None, bound=None, script=script)
    message = f"the stored counterexample still shows it: {found}"
    return row.result(Status.FAIL, examples=1, message=message, counterexample=example)


def _skipped_by_claims(row: CheckRun, target: Target) -> Result | None:
    operation, claims = row.check.operation, target.claims
    reason = lacking(operation, target)
    if reason is not None:
        return row.result(Status.NOT_PROVIDED, message=reason)
    if not claims.promises(operation, row.dtype):
        return row.result(Status.NOT_APPLICABLE, message=f"CLAIMS promise no {row.dtype} for {operation}")
    if claims.devices and row.device not in claims.devices:
        return row.result(Status.NOT_APPLICABLE, message=f"CLAIMS promise no results on {row.device}")
    return None


def lacking(operation: str, target: Target) -> str | None:
    """Return the reason why a target provides nothing of an operation; None where it provides it."""
    if operation in target.claims.not_provided:
        return target.claims.not_provided[operation]
    return _absent(operation, target) if target.operation(operation) is None else None


def _skipped_by_domain(row: CheckRun, target: Target) -> Result | None:
    refused = target.refusals(row.check.operation).messages
    if row.dtype not in refused:
        return None
    return row.result(Status.NOT_PROVIDED, message=f"not provided: {row.dtype} ({refused[row.dtype]})")


_MISSPELT = 0.8
"""Similarity of a name that is a misspelt operation, and not of a part of the operation or of something that has it."""


def _absent(operation: str, target: Target) -> str:
    message = f"the implementation has no callable {operation!r}"
    near = difflib.get_close_matches(operation, target.names(), cutoff=_MISSPELT)
    return f"{message}; did you mean {operation} where it says {near[0]}?" if near else message


def _skipped_by_prerequisites(row: CheckRun, finished: Mapping[str, Status]) -> Result | None:
    for slug in row.check.requirement.prerequisites:
        if finished.get(f"{slug}[{row.dtype}-{row.device}]") in BLOCKING:
            return row.result(Status.BLOCKED, blocked_by=slug, message=f"rests on {slug}, which does not hold")
    return None


def give_memory_back() -> None:
    """Collect cyclic garbage and return free pages to the system, once the process has grown.

    A row that fails may leave hundreds of megabytes: the frames of its errors, and the pages between what stays, which
    glibc does not return by itself. Where the system does not report the size of the process, nothing is done.
    """
    global _memory_left
    now = resident_bytes()
    _memory_left = min(_memory_left, now)
    if now - _memory_left < _GROWN_BYTES:
        return
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):  # another C library has no such function
        ctypes.CDLL(None).malloc_trim(0)
    _memory_left = resident_bytes()


def resident_bytes() -> int:
    """Return the resident set size of this process, bytes; 0 where the system does not report it."""
    try:
        return int(_MEMORY_STATISTICS.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def reproduces(script: str) -> str | None:
    """Run a counterexample's script; return its final message where it still finds the violation, else None.

    It runs in this process, and leaves PyTorch's default dtype and generator as they were.
    """
    default, drawn = torch.get_default_dtype(), torch.get_rng_state()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(script, "stored counterexample", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        return None if end.code in (0, None) else str(end.code)
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"
    finally:
        torch.set_default_dtype(default)
        torch.set_rng_state(drawn)
    return None
