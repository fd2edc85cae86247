"""Layer norm, RMS norm and clipping, by stages."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from veriformer.verify.mutants.staged_reference.scores import widen


def variance(x: Tensor, mean: Tensor) -> Tensor:
    """Return the biased variance about the mean."""
    return (x - mean).square().mean(-1, keepdim=True)


def inverse_root(moment: Tensor, eps: float, d: int) -> Tensor:
    """1 / √(moment + ε)."""
    return 1 / (moment + eps).sqrt()


def times(y: Tensor, weight: Tensor) -> Tensor:
    """y ⊙ weight."""
    return y * widen(weight)


@dataclass(frozen=True)
class LayerNorm:
    """(x − μ) / √(σ² + ε) ⊙ weight + bias."""

    variance: Callable[[Tensor, Tensor], Tensor] = variance
    inverse: Callable[[Tensor, float, int], Tensor] = inverse_root

    def __call__(self, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
        """Return the normalised rows."""
        wide = widen(x)
        mean = wide.mean(-1, keepdim=True)
        y = (wide - mean) * self.inverse(self.variance(wide, mean), eps, x.shape[-1])
        y = y if weight is None else times(y, weight)
        return (y if bias is None else y + widen(bias)).to(x.dtype)


def mean_square(x: Tensor) -> Tensor:
    """Return the mean of the squares, formed in fp32 for halves."""
    return widen(x).square().mean(-1, keepdim=True)


@dataclass(frozen=True)
class RmsNorm:
    """x / √(mean x² + ε) ⊙ weight."""

    mean_square: Callable[[Tensor], Tensor] = mean_square
    inverse: Callable[[Tensor, float, int], Tensor] = inverse_root
    times: Callable[[Tensor, Tensor], Tensor] = times

    def __call__(self, x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
        """Return the normalised rows."""
        y = widen(x) * self.inverse(self.mean_square(x), eps, x.shape[-1])
        return (y if weight is None else self.times(y, weight)).to(x.dtype)


Norm = tuple[Tensor, float]


def global_norm(grads: list[Tensor]) -> Norm:
    """(r, s) with ‖g‖ = r s, where s is a power of two near the largest entry, so that no square leaves the range."""
    s = power_of_two(max((float(g.detach().abs().max()) for g in grads if g.numel()), default=0.0))
    dtype = torch.float64 if any(g.dtype == torch.float64 for g in grads) else torch.float32
    squares = [(widen(g) / s).square().sum().to(dtype) for g in grads]
    total = torch.stack(squares).sum() if squares else torch.zeros((), dtype=dtype)
    return total.sqrt(), s


def power_of_two(x: float) -> float:
    """Return the largest power of two not above x; 1 for 0 and for what is not finite."""
    return math.ldexp(1.0, math.frexp(x)[1] - 1) if 0 < x < math.inf else 1.0


@dataclass(frozen=True)
class Clip:
    """min(1, c / ‖g‖) g; ``norms`` gives, for each gradient, the norm that it is clipped by."""

    norms: Callable[[list[Tensor]], list[Norm]] = lambda grads: [global_norm(grads)] * len(grads)
    total: Callable[[list[Tensor]], Norm] = global_norm

    def __call__(self, grads: list[Tensor], c: float) -> tuple[list[Tensor], Tensor]:
        """Return the clipped list and the norm before clipping."""
        r, s = self.total(grads)
        return [clipped(g, c, norm) for g, norm in zip(grads, self.norms(grads), strict=True)], r * s


def clipped(g: Tensor, c: float, norm: Norm) -> Tensor:
    """g shortened by c / norm, or g itself inside the ball."""
    r, s = norm
    if float(r) * s <= c:
        return g
    return (g.to(r.dtype) / s * (c / r)).to(g.dtype)
