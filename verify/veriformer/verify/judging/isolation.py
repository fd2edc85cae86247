"""Limits on the time and memory of a row, so that a target that hangs or exhausts them costs no other row."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

from veriformer.verify.judging.exceptions import Interrupted, RowTimeout
from veriformer.workers.stopwatch import Stopwatch

_MOMENT = 0.002
"""Seconds between checks of whether Hypothesis is on the stack."""

_PATIENCE = 1.0
"""Seconds to wait for Hypothesis to return; a target may use it too, and hang within it."""

MOST = 4.0
"""Maximum wall-clock time, as a multiple of the limit, of a process that was kept waiting, where the system does not
say for how long."""


@contextlib.contextmanager
def time_limit(seconds: float, *, may_kill: bool) -> Iterator[None]:
    """Raise RowTimeout in the main thread after so many seconds.

    On a busy machine they are seconds of the processor, up to a few times as many by the clock; one that sleeps has no
    longer. A target stuck in native code, or one that swallows everything, does not notice: with ``may_kill`` the
    process ends itself at twice the time, which only a worker process may do. Meanwhile Ctrl-C raises Interrupted, so
    that a KeyboardInterrupt is the target's own. Neither is raised within Hypothesis's own work, which would be left
    half done and fail with an error of its own, but as soon as it is done.
    """
    watch = Stopwatch()
    due: type[BaseException] | None = None
    latest = 0.0

    def ring(signum: int, frame: FrameType | None) -> None:
        nonlocal due, latest
        spent, interrupted = watch.spent, signum == signal.SIGINT
        if not interrupted and due is None and spent < seconds and watch.running < MOST * seconds:
            signal.setitimer(signal.ITIMER_REAL, seconds - spent)
            renew()
            return
        if interrupted or due is None:
            due, latest = Interrupted if interrupted else RowTimeout, spent + _PATIENCE
        if _within_hypothesis(frame) and spent < latest:
            signal.setitimer(signal.ITIMER_REAL, _MOMENT)
            return
        asked, due = due, None
        raise asked

    previous = signal.signal(signal.SIGALRM, ring)
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):  # else it is ignored, as in a shell's background job
        signal.signal(signal.SIGINT, ring)
    with _deadline(2 * seconds) if may_kill else contextlib.nullcontext(lambda: None) as renew:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
            if callable(handler):
                signal.signal(signal.SIGINT, handler)
            if due is Interrupted:  # all was over before it could be raised
                raise due


def _within_hypothesis(frame: FrameType | None) -> bool:
    """Return whether Hypothesis, or code that it calls, is running, not code of this suite or of the target."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in ("hypothesis", "veriformer"):
            return package == "hypothesis"
        frame = frame.f_back
    return False


@contextlib.contextmanager
def _deadline(seconds: float) -> Iterator[Callable[[], None]]:
    """End the process after this many seconds, counted anew whenever the yielded function is called."""
    with open(os.devnull, "w") as nowhere:

        def renew() -> None:
            faulthandler.dump_traceback_later(seconds, exit=True, file=nowhere)

        renew()
        try:
            yield renew
        finally:
            faulthandler.cancel_dump_traceback_later()


def run_and_leave(main: Callable[[], int]) -> NoReturn:
    """Run the main function of a process and exit at once, whatever threads and handlers a target has left."""
    status = 1
    try:
        status = main()
    except BaseException:
        with contextlib.suppress(Exception):
            traceback.print_exc()
    with contextlib.suppress(Exception):
        sys.stderr.flush()
    os._exit(status)


def limit_memory(gib: float) -> None:
    """Let the process map this many GiB more; an allocation beyond raises in the target."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    mapped = pages * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = int(mapped + gib * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
