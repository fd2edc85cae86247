"""Other ways to the position encodings."""

from __future__ import annotations

import math
from fractions import Fraction

import torch
from torch import Tensor

from veriformer.verify.mutants.records import Variant
from veriformer.verify.mutants.staged_reference.positions import (
    Alibi,
    Buckets,
    Rope,
    Scaling,
    Sinusoidal,
    alibi_slopes,
    exponents,
    frequencies,
    halves,
)

# Rotations


def _as_complex(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous()) * torch.complex(cos, sin)
    return torch.view_as_real(z).flatten(-2)


def _rotate_half(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return x * torch.cat((cos, cos), -1) + torch.cat((-b, a), -1) * torch.cat((sin, sin), -1)


def _by_three(a: Tensor, b: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """(a + ib)(cos + i sin) by three products, after Gauss."""
    k = cos * (a + b)
    return k - b * (cos + sin), k + a * (sin - cos)


def _three_interleaved(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return torch.stack(_by_three(x[..., 0::2], x[..., 1::2], cos, sin), -1).flatten(-2)


def _three_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat(_by_three(a, b, cos, sin), -1)


def _by_matrix(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Each pair times its matrix."""
    rows = torch.stack((torch.stack((cos, -sin), -1), torch.stack((sin, cos), -1)), -2)  # [..., d/2, 2, 2]
    return torch.matmul(rows, x.reshape(*x.shape[:-1], -1, 2, 1)).flatten(-3)


def _single_angles(positions: Tensor, theta: Tensor, dtype: torch.dtype) -> Tensor:
    """Angles in fp32, and in fp64 for fp64."""
    wide = torch.float64 if dtype is torch.float64 else torch.float32
    return positions.to(wide)[..., None] * theta.to(wide)


def _by_logarithm(d: int, base: float, scaling: Scaling) -> Tensor:
    kind, s = scaling or ("linear", 1.0)
    grown = math.log(base) + (d / max(d - 2, 1) * math.log(s) if kind == "ntk" else 0.0)
    return (-exponents(d) * grown).exp() / (s if kind == "linear" else 1.0)


def _scaled_positions(x: Tensor, positions: Tensor, base: float, pairing: str, scaling: Scaling) -> Tensor:
    """Linear scaling of positions, not of frequencies."""
    if scaling is not None and scaling[0] == "linear":
        positions, scaling = positions.double() / scaling[1], None
    return Rope()(x, positions, base, pairing, scaling)


def _by_halves(x: Tensor, positions: Tensor, base: float, pairing: str, scaling: Scaling) -> Tensor:
    """The other convention, whatever is asked for."""
    return Rope(interleaved=halves)(x, positions, base, pairing, scaling)


# Sinusoids


def _one_by_one(num_positions: int, d_model: int, base: float) -> Tensor:
    pe = torch.zeros(num_positions, d_model, dtype=torch.float64)
    for p in range(num_positions):
        for i in range(d_model):
            angle = p / base ** ((i - i % 2) / d_model)
            pe[p, i] = math.cos(angle) if i % 2 else math.sin(angle)
    return pe.to(torch.get_default_dtype())


def _single_sinusoids(num_positions: int, d_model: int, base: float) -> Tensor:
    """By the logarithm, as is the custom: in fp32, and in fp64 for fp64."""
    default = torch.get_default_dtype()
    wide = torch.float64 if default is torch.float64 else torch.float32
    steps = (torch.arange(0, d_model, 2, dtype=wide) * (-math.log(base) / max(d_model, 1))).exp()
    angles = torch.arange(num_positions, dtype=wide)[:, None] * steps
    pe = torch.zeros(num_positions, d_model, dtype=wide)
    pe[:, 0::2], pe[:, 1::2] = angles.sin(), angles.cos()[:, : d_model // 2]
    return pe.to(default)


def _turned_unit(num_positions: int, d_model: int, base: float) -> Tensor:
    """Parts of unit complex numbers."""
    theta = frequencies(d_model, base, None)
    angles = torch.arange(num_positions, dtype=torch.float64)[:, None] * theta
    z = torch.polar(torch.ones_like(angles), angles)
    return torch.stack((z.imag, z.real), -1).flatten(1)[:, :d_model].to(torch.get_default_dtype())


# Slopes and buckets


def _published_slopes(heads: int) -> Tensor:
    """As the paper's authors published them, by ratios."""

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


def _by_powers(distance: Tensor, e: int, buckets: int, far: int) -> Tensor:
    """Each edge that a distance has reached counts one: (x/e)^L ≥ (M/e)^t in whole numbers."""
    many = buckets - e
    found = [
        e + sum(min(x, far) ** many >= far**t * e ** (many - t) for t in range(1, many))
        for x in distance.flatten().tolist()
    ]
    return torch.tensor(found, dtype=torch.int64).reshape(distance.shape)


def _by_exact_logarithm(distance: Tensor, e: int, buckets: int, far: int) -> Tensor:
    """The logarithm in fp64, with what rounding may have taken from whole numbers given back."""
    ratio = (distance.double() / max(e, 1)).log() / math.log(far / max(e, 1)) * (buckets - e)
    return (e + (ratio + 1e-9).floor().long()).clamp(max=buckets - 1)


VARIANTS: tuple[Variant, ...] = (
    Variant(
        identifier="positions-base",
        title="The bases of the mutants",
        kernels={
            "rope": Rope(),
            "sinusoidal_encoding": Sinusoidal(),
            "alibi_slopes": alibi_slopes,
            "alibi_bias": Alibi(),
            "t5_relative_position_bucket": Buckets(),
        },
    ),
    Variant(
        identifier="rope-complex",
        title="Rotation as a product of complex numbers, and by rotating halves",
        kernels={"rope": Rope(interleaved=_as_complex, halves=_rotate_half)},
    ),
    Variant(
        identifier="rope-three-products",
        title="Rotation as a product of complex numbers by three products, as Gauss formed it",
        kernels={"rope": Rope(interleaved=_three_interleaved, halves=_three_halves)},
    ),
    Variant(
        identifier="rope-matrix",
        title="Rotation by matrices, frequencies by the logarithm",
        kernels={"rope": Rope(frequencies=_by_logarithm, interleaved=_by_matrix)},
    ),
    Variant(
        identifier="rope-fp32-angles",
        title="Angles formed in fp32, as is the custom",
        kernels={"rope": Rope(angles=_single_angles)},
    ),
    Variant(identifier="rope-scaled-positions", title="Positions are scaled", kernels={"rope": _scaled_positions}),
    Variant(
        identifier="rope-half",
        title="Features are paired by halves, and the implementation says so",
        link="https://github.com/karpathy/nanochat/issues/264",
        kernels={"rope": _by_halves},
        claims={"conventions": {"rope.pairing": "half"}},
    ),
    Variant(
        identifier="sinusoidal-one-by-one",
        title="One entry after another",
        kernels={"sinusoidal_encoding": _one_by_one},
    ),
    Variant(
        identifier="sinusoidal-fp32",
        title="Frequencies and angles in fp32, by the logarithm",
        kernels={"sinusoidal_encoding": _single_sinusoids},
    ),
    Variant(
        identifier="sinusoidal-complex",
        title="Parts of unit complex numbers",
        kernels={"sinusoidal_encoding": _turned_unit},
    ),
    Variant(
        identifier="alibi-published",
        title="Slopes by ratios, as the paper's authors published them",
        kernels={"alibi_slopes": _slopes_by_ratio, "alibi_bias": Alibi(slopes=_published_slopes)},
    ),
    Variant(
        identifier="alibi-fractions",
        title="Exact exponents, distances as the larger of two differences",
        kernels={"alibi_bias": Alibi(slopes=_exact_slopes, distances=_signed_distances)},
    ),
    Variant(
        identifier="t5-powers",
        title="Edges compared in whole numbers",
        kernels={"t5_relative_position_bucket": Buckets(beyond=_by_powers)},
    ),
    Variant(
        identifier="t5-logarithm",
        title="The logarithm in fp64, rounded down from a little above",
        kernels={"t5_relative_position_bucket": Buckets(beyond=_by_exact_logarithm)},
    ),
)
