"""FLOPs and peak memory of one attention, counted by the meter over fake tensors, without a clock and without memory.

Counted is what PyTorch's dispatcher sees: every tensor, but not what a kernel takes for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from veriformer.bench.calls import Attention, Shape, fake_call
from veriformer.bench.meter import Meter, size_of


class NotCountable(Exception):
    """This number cannot be had by counting; the message says why. Never to be read as zero."""


def count_flops(attention: Attention, shape: Shape, *, backward: bool) -> int:
    """FLOPs of the forward pass, or of both passes together.

    Raises NotCountable where a product is done in an operator that there is no formula for.
    """
    meter = _metered(attention, shape, backward=backward)
    if meter.uncounted:
        names = " and ".join(sorted(meter.uncounted))
        raise NotCountable(f"PyTorch computes it in {names}: there is no formula for its FLOPs")
    return meter.flops.total()


def modelled(attention: Attention, shape: Shape, *, backward: bool) -> list[str]:
    """Operators whose inside is not seen: a formula says what they do."""
    return sorted(_metered(attention, shape, backward=backward).modelled)


def _metered(attention: Attention, shape: Shape, *, backward: bool) -> Meter:
    with fake_call(shape, backward=backward) as call:
        meter = Meter(call.arguments)
        with meter:
            call.run(attention)
    return meter


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
