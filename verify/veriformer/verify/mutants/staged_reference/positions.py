"""Rotary and sinusoidal encodings, ALiBi and T5's buckets, by stages."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from veriformer.verify.mutants.staged_reference.scores import widen

Scaling = tuple[str, float] | None


def exponents(d: int) -> Tensor:
    """2i / d for every pair."""
    return torch.arange(0, d, 2, dtype=torch.float64) / max(d, 1)


def frequencies(d: int, base: float, scaling: Scaling) -> Tensor:
    """base^(−2i/d), scaled."""
    kind, s = scaling or ("linear", 1.0)
    grown = base * s ** (d / max(d - 2, 1)) if kind == "ntk" else base
    theta = 1 / grown ** exponents(d)
    return theta / s if kind == "linear" else theta


def angles(positions: Tensor, theta: Tensor, dtype: torch.dtype) -> Tensor:
    """Position × frequency, in fp64."""
    return positions.double()[..., None] * theta


def interleaved(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Pairs (x_2i, x_2i+1) turned."""
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)


def halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Pairs (x_i, x_i+d/2) turned."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


Turn = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Rope:
    """Frequencies, angles, their cosines and sines, and the turn that goes with the pairing."""

    frequencies: Callable[[int, float, Scaling], Tensor] = frequencies
    angles: Callable[[Tensor, Tensor, torch.dtype], Tensor] = angles
    interleaved: Turn = interleaved
    halves: Turn = halves

    def __call__(self, x: Tensor, positions: Tensor, base: float, pairing: str, scaling: Scaling) -> Tensor:
        """Return the features turned."""
        phi = self.angles(positions, self.frequencies(x.shape[-1], base, scaling), x.dtype)
        wide = widen(x)
        cos, sin = (f(phi).to(wide.dtype) for f in (torch.cos, torch.sin))
        return (self.interleaved if pairing == "interleaved" else self.halves)(wide, cos, sin).to(x.dtype)


@dataclass(frozen=True)
class Sinusoidal:
    """sin(p θ_i) and cos(p φ_i), interleaved; ``sines`` gives θ and ``cosines`` φ, which are the same."""

    sines: Callable[[int, float], Tensor] = lambda d, base: frequencies(d, base, None)
    cosines: Callable[[int, float], Tensor] = lambda d, base: frequencies(d, base, None)

    def __call__(self, num_positions: int, d_model: int, base: float) -> Tensor:
        """Return the encodings."""
        p = torch.arange(num_positions, dtype=torch.float64)[:, None]
        both = (p * self.sines(d_model, base)).sin(), (p * self.cosines(d_model, base)).cos()
        return torch.stack(both, -1).flatten(1)[:, :d_model].to(torch.get_default_dtype())


def slopes(heads: int) -> Tensor:
    """2^(−8h/H) for powers of two, and between them the slopes of the power below, then some of the power above."""
    below = 1 << (int(heads).bit_length() - 1)
    own = 2.0 ** (-8 / below * torch.arange(1, below + 1, dtype=torch.float64))
    return own if below == heads else torch.cat((own, slopes(2 * below)[0::2]))[:heads]


def distances(n_q: int, n_k: int) -> Tensor:
    """|i − j|, the last query at the last key."""
    return (torch.arange(n_k - n_q, n_k)[:, None] - torch.arange(n_k)).abs()


@dataclass(frozen=True)
class Alibi:
    """−m_h |i − j|."""

    slopes: Callable[[int], Tensor] = slopes
    distances: Callable[[int, int], Tensor] = distances

    def __call__(self, num_heads: int, n_q: int, n_k: int) -> Tensor:
        """Return the bias."""
        bias = -self.slopes(num_heads)[:, None, None] * self.distances(n_q, n_k)
        return bias.to(torch.get_default_dtype())


def alibi_slopes(num_heads: int) -> Tensor:
    """Return the slopes in the default dtype."""
    return slopes(num_heads).to(torch.get_default_dtype())


def beyond(distance: Tensor, e: int, buckets: int, far: int) -> Tensor:
    """Return the bucket of distances from e on, by whole numbers."""
    many = buckets - e
    reached = [far**t * e ** (many - t) for t in range(1, many)]
    starts = [bisect_left(range(far), x, key=lambda n: n**many) for x in reached]
    return e + torch.bucketize(distance, torch.tensor(starts, dtype=torch.int64), right=True)


@dataclass(frozen=True)
class Buckets:
    """T5's buckets: small distances as they are, the others by ``beyond``."""

    beyond: Callable[[Tensor, int, int, int], Tensor] = beyond

    def __call__(self, relative_position: Tensor, bidirectional: bool, num_buckets: int, max_distance: int) -> Tensor:
        """Return the buckets."""
        r = relative_position.long()
        max_distance = int(max_distance)
        buckets = int(num_buckets) // 2 if bidirectional else int(num_buckets)
        distance = r.abs() if bidirectional else (-r).clamp(min=0)
        far = self.beyond(distance.clamp(min=max(buckets // 2, 1)), buckets // 2, buckets, max_distance)
        bucket = torch.where(distance < buckets // 2, distance, far)
        return bucket + buckets * (r > 0) if bidirectional else bucket
