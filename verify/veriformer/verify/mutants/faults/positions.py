"""Faults of position encodings."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from veriformer.verify.mutants.base.positions import (
    Alibi,
    Buckets,
    Rope,
    Scaling,
    Sinusoidal,
    exponents,
    frequencies,
    halves,
    interleaved,
    slopes,
)
from veriformer.verify.targets.front import Kernel


def _next_exponent(d: int, base: float) -> Tensor:
    """The loop's index is doubled, and the cosine takes the next one."""
    i = torch.arange(0, d, 2, dtype=torch.float64)
    return base ** (-2 * (i + 1) / d)


def _doubled_exponent(d: int, base: float) -> Tensor:
    return base ** (-2 * exponents(d))


def _power_of_index(d: int, base: float) -> Tensor:
    """The exponent raised to 1/base, where 1/base was to be raised to the exponent."""
    return exponents(d) ** (1 / base)


def _narrow_angles(positions: Tensor, theta: Tensor, dtype: torch.dtype) -> Tensor:
    return positions.to(dtype)[..., None] * theta.to(dtype)


def _mixed_layout(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Angles laid out for neighbours, features paired by halves."""
    a, b = x.chunk(2, -1)
    return x * cos.repeat_interleave(2, -1) + torch.cat((-b, a), -1) * sin.repeat_interleave(2, -1)


def _usual_base(d: int, base: float, scaling: Scaling) -> Tensor:
    return frequencies(d, 10000.0, scaling)


def _always_longer(scaling: Scaling) -> float:
    return 1.0 if scaling is None else 0.1 * math.log(max(scaling[1], 1.0)) + 1.0


def _doubled_without_scaling(d: int, base: float, scaling: Scaling) -> Tensor:
    return frequencies(d, base, scaling) * (2.0 if scaling is None else 1.0)


def _one_sequence(heads: int) -> Tensor:
    return 2.0 ** (-8 * torch.arange(1, heads + 1, dtype=torch.float64) / heads)


def _over_queries(n_q: int, n_k: int) -> Tensor:
    """Distances among the queries' own positions, repeated over the keys where there is one query."""
    if n_q == 1:
        return torch.zeros(1, n_k, dtype=torch.int64)
    return (torch.arange(n_q)[:, None] - torch.arange(n_k)).abs()


def _slopes_of_one(num_heads: int) -> Tensor:
    return _one_sequence(num_heads).to(torch.get_default_dtype())


KERNELS: dict[str, dict[str, Kernel]] = {
    "SIN-02": {"sinusoidal_encoding": Sinusoidal(sines=_doubled_exponent, cosines=_next_exponent)},
    "SIN-04": {"sinusoidal_encoding": Sinusoidal(sines=_power_of_index, cosines=_power_of_index)},
    "ROPE-01": {"rope": Rope(angles=_narrow_angles)},
    "ROPE-02": {"rope": Rope(interleaved=_mixed_layout, halves=_mixed_layout)},
    "ROPE-03": {"rope": Rope(interleaved=halves, halves=interleaved)},
    "ROPE-09": {"rope": Rope(frequencies=_usual_base)},
    "ROPE-10": {"rope": Rope(magnitude=_always_longer)},
    "ROPE-11": {"rope": Rope(frequencies=_doubled_without_scaling)},
    "ALIBI-01": {"alibi_slopes": _slopes_of_one, "alibi_bias": Alibi(slopes=_one_sequence)},
    "ALIBI-03": {"alibi_bias": Alibi(slopes=slopes, distances=_over_queries)},
    "T5-03": {"t5_relative_position_bucket": Buckets(sign=-1)},
}
