"""Peak memory as exact bytes, without a clock and without the memory: PyTorch's ``MemTracker`` over fake tensors.

The tracker is private to PyTorch. This file is the only one that touches it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from veriformer.bench.calls import Attention, Shape, fake_call
from veriformer.bench.flops import NotCountable

MemTracker: Any
try:
    MemTracker = importlib.import_module("torch.distributed._tools.mem_tracker").MemTracker
except (ImportError, AttributeError):  # private, so it may go; torch.distributed may also be left out of a build
    MemTracker = None


def count_peak_bytes(attention: Attention, shape: Shape, *, backward: bool) -> int:
    """Bytes by which the worst moment of the call exceeds what is held after it: arguments, results, gradients.

    Counts what PyTorch's dispatcher sees: every tensor, but not what a kernel takes for itself. Raises NotCountable
    where this PyTorch has no such tracker.
    """
    with fake_call(shape, backward=backward) as call:
        tracker = _tracker(call.arguments)
        with tracker:
            results = call.run(attention)
        return _peak(tracker) - _bytes([*call.arguments, *results])


def count_whole_peak_bytes(run: Callable[[], object], held: Sequence[torch.Tensor]) -> int:
    """Bytes at the worst moment of a run on fake tensors, those that are held before it included.

    Counts as `count_peak_bytes` does, and raises as it does.
    """
    tracker = _tracker(held)
    with tracker:
        run()
    return _peak(tracker)


def _tracker(held: Sequence[torch.Tensor]) -> Any:
    if MemTracker is None:
        raise NotCountable(
            "expected torch.distributed._tools.mem_tracker.MemTracker, which counts memory but is private to PyTorch; "
            f"PyTorch {torch.__version__} has none. Use a version between 2.11 and 2.13"
        )
    tracker = MemTracker()
    tracker.track_external(*held)
    return tracker


def _bytes(tensors: Sequence[torch.Tensor]) -> int:
    """Bytes of the tensors together; those that share their memory count once."""
    storages = [tensor.untyped_storage() for tensor in tensors]
    return sum({id(storage): storage.nbytes() for storage in storages}.values())


def _peak(tracker: Any) -> int:
    """Bytes over all devices at the worst moment."""
    try:
        return sum(int(device["Total"]) for device in tracker.get_tracker_snapshot("peak").values())
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise NotCountable(
            f"PyTorch {torch.__version__} changed MemTracker, which counts memory and is private to it: "
            f"{type(error).__name__}: {error}"
        ) from error
