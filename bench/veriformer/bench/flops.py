"""FLOPs of one attention without a clock, counted by the meter."""

from __future__ import annotations

from veriformer.bench.calls import Attention, Shape, fake_call
from veriformer.bench.meter import Meter


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
