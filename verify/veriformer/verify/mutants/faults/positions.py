"""Faults of position encodings."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.mutants.combinators import Fault, Operation, given, instead, instead_of, replaced_by
from veriformer.verify.mutants.staged_reference.positions import (
    Alibi,
    Rope,
    Scaling,
    Sinusoidal,
    exponents,
    slopes,
)


def _next_exponent(d: int, base: float) -> Tensor:
    """The loop's index is doubled, and the cosine takes the next one."""
    i = torch.arange(0, d, 2, dtype=torch.float64)
    return base ** (-2 * (i + 1) / d)


def _doubled_exponent(d: int, base: float) -> Tensor:
    return base ** (-2 * exponents(d))


def _own_column(d: int, base: float) -> Tensor:
    """The exponents of the columns 1, 3, 5, …, over d."""
    return base ** (-torch.arange(1, d + 1, 2, dtype=torch.float64) / d)


def _power_of_index(d: int, base: float) -> Tensor:
    """The exponent raised to 1/base, where 1/base was to be raised to the exponent."""
    return exponents(d) ** (1 / base)


def _narrow_angles(positions: Tensor, theta: Tensor, dtype: torch.dtype) -> Tensor:
    return positions.to(dtype)[..., None] * theta.to(dtype)


def _mixed_layout(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Angles laid out for neighbours, features paired by halves."""
    a, b = x.chunk(2, -1)
    return x * cos.repeat_interleave(2, -1) + torch.cat((-b, a), -1) * sin.repeat_interleave(2, -1)


def _other_pairing(*args: Tensor, pairing: str, **options: Any) -> Any:
    return args, {"pairing": "half" if pairing == "interleaved" else "interleaved", **options}


def _always_longer(op: Operation, *args: Tensor, scaling: Scaling, **options: Any) -> Tensor:
    y: Tensor = op(*args, scaling=scaling, **options)
    return y if scaling is None else y * (0.1 * math.log(max(scaling[1], 1.0)) + 1.0)


def _doubled_without_scaling(x: Tensor, positions: Tensor, *, scaling: Scaling, **options: Any) -> Any:
    return (x, positions.double() * (2.0 if scaling is None else 1.0)), {"scaling": scaling, **options}


def _one_sequence(heads: int) -> Tensor:
    return 2.0 ** (-8 * torch.arange(1, heads + 1, dtype=torch.float64) / heads)


def _over_queries(n_q: int, n_k: int) -> Tensor:
    """Distances among the queries' own positions, repeated over the keys where there is one query."""
    if n_q == 1:
        return torch.zeros(1, n_k, dtype=torch.int64)
    return (torch.arange(n_q)[:, None] - torch.arange(n_k)).abs()


def _slopes_of_one(num_heads: int) -> Tensor:
    return _one_sequence(num_heads).to(torch.get_default_dtype())


FAULTS: dict[str, dict[str, Fault]] = {
    "SIN-02": {"sinusoidal_encoding": replaced_by(Sinusoidal(sines=_doubled_exponent, cosines=_next_exponent))},
    "SIN-04": {"sinusoidal_encoding": replaced_by(Sinusoidal(sines=_power_of_index, cosines=_power_of_index))},
    "SIN-05": {"sinusoidal_encoding": replaced_by(Sinusoidal(cosines=_own_column))},
    "ROPE-01": {"rope": replaced_by(Rope(angles=_narrow_angles))},
    "ROPE-02": {"rope": replaced_by(Rope(interleaved=_mixed_layout, halves=_mixed_layout))},
    "ROPE-03": {"rope": given(_other_pairing)},
    "ROPE-09": {"rope": instead_of("base", 10000.0)},
    "ROPE-10": {"rope": instead(_always_longer)},
    "ROPE-11": {"rope": given(_doubled_without_scaling)},
    "ALIBI-01": {
        "alibi_slopes": replaced_by(_slopes_of_one),
        "alibi_bias": replaced_by(Alibi(slopes=_one_sequence)),
    },
    "ALIBI-03": {"alibi_bias": replaced_by(Alibi(slopes=slopes, distances=_over_queries))},
    "T5-03": {"t5_relative_position_bucket": given(lambda r, **options: ((-r.long(),), options))},
}
