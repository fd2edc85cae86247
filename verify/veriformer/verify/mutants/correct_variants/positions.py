"""Other ways to the position encodings."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.formulas.base import widen
from veriformer.verify.formulas.kernels import kernel
from veriformer.verify.mutants.records import Variant, variant
from veriformer.verify.targets.argument_validation import RawOp

Scaling = tuple[str, float] | None

# Rotations


def _frequencies(d: int, base: float, scaling: Scaling) -> Tensor:
    """Return base^(−2i/d) for every pair, scaled, by the logarithm, in fp64."""
    kind, s = scaling or ("linear", 1.0)
    grown = math.log(base) + (d / max(d - 2, 1) * math.log(s) if kind == "ntk" else 0.0)
    return (-_exponents(d) * grown).exp() / (s if kind == "linear" else 1.0)


def _exponents(d: int) -> Tensor:
    """Return 2i / d for every pair."""
    return torch.arange(0, d, 2, dtype=torch.float64) / max(d, 1)


Turn = Callable[[Tensor, Tensor, Tensor], Tensor]


def _turned(interleaved: Turn, halves: Turn, *, single: bool = False) -> RawOp:
    """Return RoPE that turns features of each pairing like this. single: with angles in fp32, but for fp64."""

    def rope(x: Tensor, positions: Tensor, base: float, pairing: str, scaling: Scaling) -> Tensor:
        wide = widen(x)
        format_ = wide.dtype if single else torch.float64
        phi = positions.to(format_)[..., None] * _frequencies(x.shape[-1], base, scaling).to(format_)
        turn = interleaved if pairing == "interleaved" else halves
        return turn(wide, phi.cos().to(wide.dtype), phi.sin().to(wide.dtype)).to(x.dtype)

    return rope


def _as_complex(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous()) * torch.complex(cos, sin)
    return torch.view_as_real(z).flatten(-2)


def _rotate_half(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return x * torch.cat((cos, cos), -1) + torch.cat((-b, a), -1) * torch.cat((sin, sin), -1)


def _by_matrix(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Multiply each pair by its rotation matrix."""
    rows = torch.stack((torch.stack((cos, -sin), -1), torch.stack((sin, cos), -1)), -2)  # [..., d/2, 2, 2]
    return torch.matmul(rows, x.reshape(*x.shape[:-1], -1, 2, 1)).flatten(-3)


def _halves_by_matrix(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    y = _by_matrix(torch.stack((a, b), -1).flatten(-2), cos, sin)
    return torch.cat((y[..., 0::2], y[..., 1::2]), -1)


def _scaled_positions(x: Tensor, positions: Tensor, base: float, pairing: str, scaling: Scaling) -> Any:
    """Scale positions linearly, in place of frequencies."""
    if scaling is not None and scaling[0] == "linear":
        positions, scaling = positions.double() / scaling[1], None
    return kernel("rope")(x, positions, base, pairing, scaling)


_BY_THREE = (
    "return _features(xp, a * cos - b * sin, a * sin + b * cos, pairing)",
    "k = cos * (a + b)\n    return _features(xp, k - b * (cos + sin), k + a * (sin - cos), pairing)",
)
"""Edit of RoPE: (a + ib)(cos + i sin) by three products, after Gauss."""

_BY_HALVES = (
    ("_pairs(x, pairing)", '_pairs(x, "half")'),
    ("a * sin + b * cos, pairing)", 'a * sin + b * cos, "half")'),
)
"""Edits of RoPE: the other convention, whatever is asked for."""


# Sinusoids


def _one_by_one(num_positions: int, d_model: int, base: float) -> Tensor:
    pe = torch.zeros(num_positions, d_model, dtype=torch.float64)
    for p in range(num_positions):
        for i in range(d_model):
            angle = p / base ** ((i - i % 2) / d_model)
            pe[p, i] = math.cos(angle) if i % 2 else math.sin(angle)
    return pe.to(torch.get_default_dtype())


def _single_sinusoids(num_positions: int, d_model: int, base: float) -> Tensor:
    """Compute frequencies by the logarithm, as usual: in fp32, and in fp64 for fp64."""
    default = torch.get_default_dtype()
    wide = torch.float64 if default is torch.float64 else torch.float32
    steps = (torch.arange(0, d_model, 2, dtype=wide) * (-math.log(base) / max(d_model, 1))).exp()
    angles = torch.arange(num_positions, dtype=wide)[:, None] * steps
    pe = torch.zeros(num_positions, d_model, dtype=wide)
    pe[:, 0::2], pe[:, 1::2] = angles.sin(), angles.cos()[:, : d_model // 2]
    return pe.to(default)


def _turned_unit(num_positions: int, d_model: int, base: float) -> Tensor:
    """Compute sines and cosines as parts of unit complex numbers."""
    theta = base ** -_exponents(d_model)
    angles = torch.arange(num_positions, dtype=torch.float64)[:, None] * theta
    z = torch.polar(torch.ones_like(angles), angles)
    return torch.stack((z.imag, z.real), -1).flatten(1)[:, :d_model].to(torch.get_default_dtype())


# Slopes and buckets


def _published_slopes(heads: int) -> Tensor:
    """Return slopes as published by the paper's authors, by ratios."""

    def powers(n: int) -> list[float]:
        start = 2.0 ** -(2.0 ** -(math.log2(n) - 3))
        return [start * start**i for i in range(n)]

    below = 2 ** math.floor(math.log2(heads))
    rest = powers(2 * below)[0::2][: heads - below] if heads > below else []
    return torch.tensor(powers(below) + rest, dtype=torch.float64)


def _exact_slopes(heads: int) -> Tensor:
    below = 1 << (int(heads).bit_length() - 1)
    own = [Fraction(8 * h, below) for h in range(1, below + 1)]
    between = [Fraction(4 * h, below) for h in range(1, 2 * below, 2)]
    return torch.tensor([2.0 ** -float(e) for e in (own + between)[:heads]], dtype=torch.float64)


def _signed_distances(n_q: int, n_k: int) -> Tensor:
    offset = torch.arange(n_k)[None] - torch.arange(n_q)[:, None] - (n_k - n_q)
    return torch.maximum(offset, -offset)


def _slopes_by_ratio(num_heads: int) -> Tensor:
    return _published_slopes(num_heads).to(torch.get_default_dtype())


def _bias_of(slopes: Callable[[int], Tensor]) -> RawOp:
    def alibi_bias(num_heads: int, n_q: int, n_k: int) -> Tensor:
        return (-slopes(num_heads)[:, None, None] * _signed_distances(n_q, n_k)).to(torch.get_default_dtype())

    return alibi_bias


_BUCKET = 'reached = np.searchsorted(edges(buckets, max_distance), distance, side="right")'

_BY_POWERS = (
    _BUCKET,
    "e, many = buckets // 2, buckets - buckets // 2\n"
    "    x = np.minimum(distance, max_distance).astype(object)\n"
    "    steps = [x**many >= max_distance**t * e ** (many - t) for t in range(1, many)]\n"
    "    reached = np.where(distance < e, distance, e + np.sum(steps, axis=0))",
)
"""Edit of T5's buckets: each edge that a distance has reached counts one, (x/e)^L ≥ (M/e)^t in whole numbers."""

_BY_LOGARITHM = (
    _BUCKET,
    "e, many = max(buckets // 2, 1), buckets - buckets // 2\n"
    "    place = many * np.log(np.maximum(distance, e) / e) / np.log(max_distance / e)\n"
    "    far = np.minimum(buckets // 2 + np.floor(place + 1e-9), buckets - 1)\n"
    "    reached = np.where(distance < buckets // 2, distance, far)",
)
"""Edit of T5's buckets: the logarithm in fp64, with what rounding may have taken from whole numbers given back."""

VARIANTS: tuple[Variant, ...] = (
    variant(
        "positions-base",
        "The bases of the mutants",
        {
            name: kernel(name)
            for name in ("rope", "sinusoidal_encoding", "alibi_slopes", "alibi_bias", "t5_relative_position_bucket")
        },
    ),
    variant(
        "rope-complex",
        "Rotation as a product of complex numbers, and by rotating halves",
        rope=_turned(_as_complex, _rotate_half),
    ),
    variant(
        "rope-three-products",
        "Rotation as a product of complex numbers by three products, as Gauss formed it",
        rope=kernel("rope", _BY_THREE),
    ),
    variant(
        "rope-matrix", "Rotation by matrices, frequencies by the logarithm", rope=_turned(_by_matrix, _halves_by_matrix)
    ),
    variant(
        "rope-fp32-angles",
        "Angles formed in fp32, as is the custom",
        rope=_turned(_as_complex, _rotate_half, single=True),
    ),
    variant("rope-scaled-positions", "Positions are scaled", rope=_scaled_positions),
    variant(
        "rope-half",
        "Features are paired by halves, and the implementation says so",
        link="https://github.com/karpathy/nanochat/issues/264",
        claims={"conventions": {"rope.pairing": "half"}},
        rope=kernel("rope", *_BY_HALVES),
    ),
    variant("sinusoidal-one-by-one", "One entry after another", sinusoidal_encoding=_one_by_one),
    variant(
        "sinusoidal-fp32", "Frequencies and angles in fp32, by the logarithm", sinusoidal_encoding=_single_sinusoids
    ),
    variant("sinusoidal-complex", "Parts of unit complex numbers", sinusoidal_encoding=_turned_unit),
    variant(
        "alibi-published",
        "Slopes by ratios, as the paper's authors published them",
        alibi_slopes=_slopes_by_ratio,
        alibi_bias=_bias_of(_published_slopes),
    ),
    variant(
        "alibi-fractions",
        "Exact exponents, distances as the larger of two differences",
        alibi_bias=_bias_of(_exact_slopes),
    ),
    variant(
        "t5-powers",
        "Edges compared in whole numbers",
        t5_relative_position_bucket=kernel("t5_relative_position_bucket", _BY_POWERS),
    ),
    variant(
        "t5-logarithm",
        "The logarithm in fp64, rounded down from a little above",
        t5_relative_position_bucket=kernel("t5_relative_position_bucket", _BY_LOGARITHM),
    ),
)
