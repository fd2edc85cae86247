"""Attributes that a candidate replaces in its process: functions that compare, measure time or compute."""

from __future__ import annotations

import builtins
import gc
import math
import random
import threading
import time
import timeit
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
import torch.testing
import torch.utils.benchmark

_HOLDERS: Mapping[str, Any] = {
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "torch.nn.functional": torch.nn.functional,
    "torch.nn.Module": torch.nn.Module,
    "torch.autograd": torch.autograd,
    "torch.linalg": torch.linalg,
    "torch.testing": torch.testing,
    "torch.random": torch.random,
    "torch.cuda": torch.cuda,
    "torch.cuda.Event": torch.cuda.Event,
    "torch.cuda.Stream": torch.cuda.Stream,
    "torch.utils.benchmark": torch.utils.benchmark,
    "torch.utils.benchmark.Timer": torch.utils.benchmark.Timer,
    "time": time,
    "timeit": timeit,
    "math": math,
    "random": random,
    "gc": gc,
    "builtins": builtins,
    "threading": threading,
    "numpy": np,
    "numpy.testing": getattr(np, "testing"),  # noqa: B009  (watched, not used)
    "numpy.random": np.random,
}


def attributes() -> dict[str, Any]:
    """Every callable attribute of the modules and classes watched, by its full name."""
    return dict(_attributes())


def _attributes() -> Iterator[tuple[str, Any]]:
    for holder, thing in _HOLDERS.items():
        for name, value in list(vars(thing).items()):
            if callable(value) or isinstance(value, staticmethod | classmethod | property):
                yield f"{holder}.{name}", value


def replaced(before: Mapping[str, Any]) -> list[str]:
    """The names of what is another thing than before, or gone; what PyTorch puts there itself is left out."""
    now = attributes()
    return sorted(n for n, x in before.items() if now.get(n) is not x and not _own(now.get(n)))


def _own(value: Any) -> bool:
    """Return whether PyTorch or NumPy has made it: both replace functions of their own while they trace or compile."""
    code = getattr(value, "__code__", None)
    if code is not None:
        return any(f"/{library}/" in code.co_filename for library in ("torch", "numpy"))
    return str(getattr(value, "__module__", "")).partition(".")[0] in ("torch", "numpy")
