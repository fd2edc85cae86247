"""FLOPs and peak memory of one attention, counted by the meter over fake tensors, without a clock and without memory.

Counted is what PyTorch's dispatcher sees: every tensor, but not what a kernel takes for itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from veriformer.bench.meter import Meter, size_of

Attention = Callable[..., torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """B, H, G, n_q, n_k, d_k, d_v of an attention, and the options it is called with."""

    B: int
    H: int
    G: int
    n_q: int
    n_k: int
    d_k: int
    d_v: int
    options: Mapping[str, Any] = field(default_factory=dict)


class NotCountable(Exception):
    """This number cannot be had by counting; the message says why. Never to be read as zero."""


def count_flops(attention: Attention, shape: Shape, *, backward: bool) -> int:
    """Return the FLOPs of the forward pass, or of both passes together.

    Raises NotCountable where a product is done in an operator that there is no formula for.
    """
    meter, _ = _metered(attention, shape, backward=backward)
    if meter.uncounted:
        names = " and ".join(sorted(meter.uncounted))
        raise NotCountable(f"PyTorch computes it in {names}: there is no formula for its FLOPs")
    return meter.flops.total()


def modelled(attention: Attention, shape: Shape, *, backward: bool) -> list[str]:
    """Return the operators whose inside is not seen: a formula says what they do."""
    return sorted(_metered(attention, shape, backward=backward)[0].modelled)


def count_peak_bytes(attention: Attention, shape: Shape, *, backward: bool) -> int:
    """Return the bytes by which the worst moment of the call exceeds arguments, results and gradients."""
    meter, held = _metered(attention, shape, backward=backward)
    return meter.peak - held


def _metered(attention: Attention, shape: Shape, *, backward: bool) -> tuple[Meter, int]:
    """Meter a call on fake float32 CPU tensors; return the meter, and the bytes held after the call.

    It takes the way through PyTorch that real tensors take, kernels left out.
    """

    def empty(*sizes: int, differentiable: bool = backward) -> torch.Tensor:
        return torch.empty(sizes, dtype=torch.float32, requires_grad=differentiable)

    from torch._subclasses.fake_tensor import FakeTensorMode  # brings SymPy, which what only times does without

    with FakeTensorMode():
        q = empty(shape.B, shape.H, shape.n_q, shape.d_k)
        k = empty(shape.B, shape.G, shape.n_k, shape.d_k)
        v = empty(shape.B, shape.G, shape.n_k, shape.d_v)
        cotangent = [empty(shape.B, shape.H, shape.n_q, shape.d_v, differentiable=False)] if backward else []
        meter = Meter([q, k, v, *cotangent])
        with meter:
            o = attention(q, k, v, **shape.options)
            gradients = torch.autograd.grad(o, [q, k, v], cotangent) if backward else ()
        return meter, size_of([q, k, v, *cotangent, o, *gradients])


def count_whole_peak_bytes(run: Callable[[], object], held: Sequence[torch.Tensor]) -> int:
    """Return the bytes at the worst moment of a run on fake tensors, those that are held before it included."""
    meter = Meter(held)
    with meter:
        run()
    return meter.peak
