"""Guards of process-wide state: changes that a target makes are undone and reported."""

from __future__ import annotations

import builtins
import contextlib
import gc
import operator
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from veriformer.verify.judging.exceptions import RowTimeout

Tell = Callable[[str], None]


@dataclass(frozen=True)
class _Watched:
    """Watched state of the process. read: the value compared by ``same``; keep: the value restored, if another."""

    name: str
    read: Callable[[], Any]
    restore: Callable[[Any], object]
    keep: Callable[[], Any] | None = None
    same: Callable[[Any, Any], bool] = operator.eq


_COMPILING = 2000
"""Recursion limit that PyTorch's compiler sets wherever it is lower (``torch/_inductor/compile_fx.py``)."""


def _as_deep(now: int, before: int) -> bool:
    """Return whether a recursion limit is unchanged, or was raised to no more than ``_COMPILING``."""
    return now == before or before < now <= _COMPILING


def _deterministic() -> tuple[bool, bool]:
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


def _set_deterministic(before: tuple[bool, bool]) -> None:
    torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def _flags() -> tuple[bool, bool, bool]:
    return torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32


def _set_flags(before: tuple[bool, bool, bool]) -> None:
    flags = torch.backends.cudnn
    flags.deterministic, flags.benchmark, flags.allow_tf32 = before


def _set_device(before: torch.device) -> None:
    torch.set_default_device(None if before.type == "cpu" else before)


def _return(folder: str | None) -> None:
    if folder is not None:
        with contextlib.suppress(OSError):  # it may be gone
            os.chdir(folder)


def _handlers() -> dict[int, Any]:
    return {number: signal.getsignal(number) for number in _SIGNALS}


def _set_handlers(before: dict[int, Any]) -> None:
    if threading.current_thread() is threading.main_thread():
        for number, handler in before.items():
            if handler is not None:  # None: it was not Python that set it
                signal.signal(number, handler)


_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGCHLD", "SIGHUP") if hasattr(signal, name)
)

_HOOKS = tuple(x for name, x in vars(nn.modules.module).items() if name.startswith("_global") and isinstance(x, dict))


def _hooks() -> tuple[tuple[Any, ...], ...]:
    return tuple(tuple(one) for one in _HOOKS)


def _remove_hooks(before: tuple[tuple[Any, ...], ...]) -> None:
    for one, kept in zip(_HOOKS, before, strict=True):
        for key in set(one) - set(kept):
            del one[key]


_COMPARING = {
    torch: ("equal", "allclose", "isclose", "isnan", "isfinite", "isinf", "eq", "ne", "all", "any", "where", "abs"),
    torch.Tensor: (
        *("equal", "isnan", "isfinite", "isinf", "eq", "ne", "__eq__", "__ne__", "all", "any", "abs"),
        *("detach", "clone", "double", "to", "cpu", "numpy", "tolist", "item", "__bool__"),
    ),
    np: ("isnan", "isfinite", "isinf", "array_equal", "allclose", "abs", "where", "maximum", "all", "any"),
}
"""Functions with which the suite, a script or a target compares numbers: a target that replaces one judges itself."""

_CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
_TELLING_TIME = {time: ("sleep", *_CLOCKS, *(f"{name}_ns" for name in _CLOCKS))}

_NOTHING = object()


def _functions(name: str, of: Mapping[Any, tuple[str, ...]]) -> _Watched:
    """Return the watched state of replaceable functions, given by their owners."""
    places = tuple((owner, name) for owner, names in of.items() for name in names)
    spaces = tuple((vars(owner), name) for owner, name in places)  # they show what is set later

    def read() -> tuple[Any, ...]:
        return tuple([space.get(name, _NOTHING) for space, name in spaces])

    def restore(before: tuple[Any, ...]) -> None:
        for (owner, name), found in zip(places, before, strict=True):
            if found is not _NOTHING:
                setattr(owner, name, found)
            elif name in vars(owner):
                delattr(owner, name)

    return _Watched(name, read, restore, same=lambda one, other: all(map(operator.is_, one, other)))


def _traces() -> tuple[Any, Any]:
    return sys.gettrace(), sys.getprofile()


def _set_traces(before: tuple[Any, Any]) -> None:
    sys.settrace(before[0])
    sys.setprofile(before[1])


_LIMITS = tuple(getattr(resource, f"RLIMIT_{name}") for name in ("NOFILE", "AS", "CPU", "FSIZE", "STACK"))


def _limits() -> tuple[tuple[int, int], ...]:
    return tuple([resource.getrlimit(limit) for limit in _LIMITS])


def _set_limits(before: tuple[tuple[int, int], ...]) -> None:
    for limit, value in zip(_LIMITS, before, strict=True):
        with contextlib.suppress(OSError, ValueError):  # what was lowered for good stays so
            resource.setrlimit(limit, value)


def _set_builtins(before: dict[str, Any]) -> None:
    names = vars(builtins)
    names.update(before)  # first, for what follows calls some of them
    for name in set(names) - set(before):
        del names[name]


_DIRECTORY = _Watched("the working directory", os.getcwd, _return)
_MODES = (
    _Watched("Python's built-in functions", vars(builtins).copy, _set_builtins),  # first, for all others call them
    _Watched("whether gradients are recorded", torch.is_grad_enabled, torch._C._set_grad_enabled),
    _Watched("the default dtype", torch.get_default_dtype, torch.set_default_dtype),
    _Watched("the default device", torch.get_default_device, _set_device),
    _Watched("the number of threads", torch.get_num_threads, torch.set_num_threads),
    _Watched("deterministic algorithms", _deterministic, _set_deterministic),
    _Watched("the flags of cuDNN", _flags, _set_flags),
    _Watched(
        "the precision of matrix products", torch.get_float32_matmul_precision, torch.set_float32_matmul_precision
    ),
    _Watched("what NumPy does about errors", np.geterr, lambda before: np.seterr(**before)),
    _Watched("the limit of recursion", sys.getrecursionlimit, sys.setrecursionlimit, same=_as_deep),
    _Watched("detection of anomalies", torch.is_anomaly_enabled, torch.set_anomaly_enabled),
    _Watched("hooks of all modules", _hooks, _remove_hooks),
    _Watched("handlers of signals", _handlers, _set_handlers),
    _functions("functions that compare numbers", _COMPARING),
    _functions("the clock", _TELLING_TIME),
    _Watched("what traces or profiles the process", _traces, _set_traces),
    _Watched("limits on what the process may take", _limits, _set_limits),
    _Watched("whether garbage is collected", gc.isenabled, lambda before: gc.enable() if before else gc.disable()),
)
# What draws from the generator changes its state and may; only a seed that was set tells itself by another seed.
_SEED = _Watched("the seed of PyTorch's generator", torch.initial_seed, torch.set_rng_state, torch.get_rng_state)

OF_CALLS = (*_MODES, _DIRECTORY, _SEED)
"""State watched during a call. Python's and NumPy's generators are restored by Hypothesis, example by example."""

OF_ROWS = (*_MODES, _DIRECTORY)
"""State watched during a row and during loading; the suite itself seeds rows."""


@contextlib.contextmanager
def guarded(watched: tuple[_Watched, ...], tell: Tell) -> Iterator[None]:
    """Restore the watched state that changed within the context, and report its name.

    A copy of the process that was forked inside, and would go on as if it were the process itself, ends here. Where
    the time of a row ends inside, nothing is told: who was about to put something back may have been stopped in it.
    """
    before = [(one, _now(one), one.keep() if one.keep else None) for one in watched]
    process = os.getpid()
    stopped = False
    try:
        yield
    except RowTimeout:
        stopped = True
        raise
    finally:
        if os.getpid() != process:
            os._exit(0)
        for one, value, kept in before:
            if not one.same(_now(one), value):
                one.restore(value if one.keep is None else kept)
                if not stopped:
                    tell(one.name)


@contextlib.contextmanager
def streams() -> Iterator[None]:
    """Redirect Python's stdout and stderr to the null device; keep their descriptors open."""
    before = sys.stdout, sys.stderr
    with open(os.devnull, "w") as nowhere, open(os.devnull, "w") as too:
        sys.stdout, sys.stderr = nowhere, too
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before
            for descriptor in (1, 2):
                _open(descriptor)


def _open(descriptor: int) -> None:
    try:
        os.fstat(descriptor)
    except OSError:
        nowhere = os.open(os.devnull, os.O_RDWR)
        if nowhere != descriptor:
            os.dup2(nowhere, descriptor)
            os.close(nowhere)


@contextlib.contextmanager
def environment(tell: Tell) -> Iterator[None]:
    """Restore environment variables that were set before, and report changes; variables that libraries add may stay."""
    before = dict(os.environ)
    try:
        yield
    finally:
        if any(os.environ.get(name) != value for name, value in before.items()):
            os.environ.update(before)
            tell("variables of the environment")


def _now(one: _Watched) -> Any:
    try:
        return one.read()
    except OSError:  # the working directory may be gone
        return None
