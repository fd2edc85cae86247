"""State of the whole process that a target must leave alone: what it changes is put back, and told."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

Tell = Callable[[str], None]


@dataclass(frozen=True)
class _Watched:
    """One piece of state. read: what is compared; keep: what putting it back takes, where that is more."""

    name: str
    read: Callable[[], Any]
    restore: Callable[[Any], object]
    keep: Callable[[], Any] | None = None


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


_DIRECTORY = _Watched("the working directory", os.getcwd, os.chdir)
_MODES = (
    _Watched("whether gradients are recorded", torch.is_grad_enabled, torch._C._set_grad_enabled),
    _Watched("the default dtype", torch.get_default_dtype, torch.set_default_dtype),
    _Watched("the default device", torch.get_default_device, _set_device),
    _Watched("the number of threads", torch.get_num_threads, torch.set_num_threads),
    _Watched("deterministic algorithms", _deterministic, _set_deterministic),
    _Watched("the flags of cuDNN", _flags, _set_flags),
    _Watched(
        "the precision of matrix products", torch.get_float32_matmul_precision, torch.set_float32_matmul_precision
    ),
)
# What draws from the generator changes its state and may; only a seed that was set tells itself by another seed.
_SEED = _Watched("the seed of PyTorch's generator", torch.initial_seed, torch.set_rng_state, torch.get_rng_state)

OF_CALLS = (_DIRECTORY, *_MODES, _SEED)
"""What is watched over one call. Python's and NumPy's generators are put back by Hypothesis, example by example."""

OF_ROWS = (_DIRECTORY, *_MODES)
"""What is watched over one row and over loading; the suite itself seeds rows."""


@contextlib.contextmanager
def guarded(watched: tuple[_Watched, ...], tell: Tell) -> Iterator[None]:
    """Put back whatever of this changes inside, and tell its name."""
    before = [(one, one.read(), one.keep() if one.keep else None) for one in watched]
    try:
        yield
    finally:
        for one, value, kept in before:
            if _now(one) != value:
                one.restore(value if one.keep is None else kept)
                tell(one.name)


@contextlib.contextmanager
def environment(tell: Tell) -> Iterator[None]:
    """The same for variables of the environment that were set already; libraries add their own when first used."""
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
