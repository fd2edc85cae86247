"""Kernels that a run launches on a GPU, bytes that they move and times that the host waits, counted without one.

Tensors are fake: no memory, no clock. An operator of the dispatcher counts as one kernel; where a GPU launches two or
three for it, as for gradients of attention, it does so whoever asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from veriformer.bench.meter import ALLOCATING, Meter

UNLAUNCHED = ALLOCATING | {"_unsafe_view", "detach", "_record_function_enter_new", "_record_function_exit"}
"""Operators beside views that launch no kernel."""

_IS_CPU: Callable[..., bool] = torch.Tensor.is_cpu.__get__  # type: ignore[attr-defined]


class Launches(Meter):  # type: ignore[no-untyped-call]
    """Meter that tells kernels from other operators, and answers where the host asks for the value of a fake tensor.

    By `item`, `bool` or a branch: the answer is `True` or 1, and counts in `waits`, since it would be waited for.
    """

    @property
    def kernels(self) -> Counter[str]:
        """Return how often each operator was launched."""
        return Counter({name: times for name, times in self.calls.items() if name not in UNLAUNCHED})

    @property
    def bytes(self) -> int:
        """Return the bytes that the kernels read and write."""
        return sum(moved for name, moved in self.moved.items() if name not in UNLAUNCHED)

    def is_composed(self, func: Any) -> bool:
        """Return whether an operator has no kernel of its own."""
        return super().is_composed(func) and not torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CPU")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket is torch.ops.aten._local_scalar_dense:
            self.waits += 1
            dtype = args[0].dtype
            return True if dtype is torch.bool else 1.0 if dtype.is_floating_point else 1
        return super().__torch_dispatch__(func, types, args, kwargs)


class AsOnGPU(TorchFunctionMode):
    """Tensors of the CPU say that they are elsewhere: what asks, does as on a GPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return False if func == _IS_CPU else func(*args, **(kwargs or {}))


@contextmanager
def fake_gpu() -> Iterator[None]:
    """Make fake tensors within, which stand for those of a GPU. PyTorch without CUDA differentiates no other ones."""
    from torch._subclasses.fake_tensor import FakeTensorMode  # brings SymPy, which what only times does without

    with FakeTensorMode(), AsOnGPU():
        yield
