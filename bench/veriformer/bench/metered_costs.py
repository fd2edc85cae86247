"""FLOPs and peak memory of one attention, counted by the meter over fake tensors, without a clock and without memory.

Counted is what PyTorch's dispatcher sees: every tensor, but not what a kernel takes for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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


@dataclass(frozen=True)
class Call:
    """Arguments of one call, with the cotangent of its result where the backward pass is wanted too."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    cotangent: torch.Tensor | None
    options: Mapping[str, Any]

    @property
    def arguments(self) -> list[torch.Tensor]:
        """The tensors that the caller holds before the call."""
        return [t for t in (self.q, self.k, self.v, self.cotangent) if t is not None]

    def run(self, attention: Attention) -> list[torch.Tensor]:
        """The result and, where there is a cotangent, the three gradients."""
        o = attention(self.q, self.k, self.v, **self.options)
        if self.cotangent is None:
            return [o]
        return [o, *torch.autograd.grad(o, [self.q, self.k, self.v], self.cotangent)]


@contextmanager
def fake_call(shape: Shape, *, backward: bool) -> Iterator[Call]:
    """A call on fake float32 CPU tensors: it takes the way through PyTorch that real ones take, kernels left out."""

    def empty(*sizes: int, differentiable: bool = backward) -> torch.Tensor:
        return torch.empty(sizes, dtype=torch.float32, requires_grad=differentiable)

    from torch._subclasses.fake_tensor import FakeTensorMode  # brings SymPy, which what only times does without

    with FakeTensorMode():
        q = empty(shape.B, shape.H, shape.n_q, shape.d_k)
        k = empty(shape.B, shape.G, shape.n_k, shape.d_k)
        v = empty(shape.B, shape.G, shape.n_k, shape.d_v)
        cotangent = empty(shape.B, shape.H, shape.n_q, shape.d_v, differentiable=False) if backward else None
        yield Call(q, k, v, cotangent, shape.options)


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
