"""Peak memory as exact bytes, without a clock and without the memory: the meter over fake tensors.

Counted is what PyTorch's dispatcher sees: every tensor, but not what a kernel takes for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from veriformer.bench.calls import Attention, Shape, fake_call
from veriformer.bench.meter import Meter, size_of


def count_peak_bytes(attention: Attention, shape: Shape, *, backward: bool) -> int:
    """Bytes by which the worst moment of the call exceeds what is held after it: arguments, results, gradients."""
    with fake_call(shape, backward=backward) as call:
        meter = Meter(call.arguments)
        with meter:
            results = call.run(attention)
        return meter.peak - size_of([*call.arguments, *results])


def count_whole_peak_bytes(run: Callable[[], object], held: Sequence[torch.Tensor]) -> int:
    """Bytes at the worst moment of a run on fake tensors, those that are held before it included."""
    meter = Meter(held)
    with meter:
        run()
    return meter.peak
