"""The sinusoidal encoding of absolute positions."""

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.positions.angles import cosines_and_sines, frequencies


def sinusoidal_encoding(num_positions: int, d_model: int, *, base: float = 10000.0) -> Tensor:
    r"""Encode the positions from 0 on by sines and cosines of many wavelengths, interleaved.

    $$PE_{p, 2i} = \sin(p\, \theta_i), \quad PE_{p, 2i+1} = \cos(p\, \theta_i), \quad
      \theta_i = \mathrm{base}^{-2i/d_{\mathrm{model}}}$$

    A shift of positions turns each pair, and the inner product of two encodings depends on their distance alone. Of an
    odd width the last feature is a sine without its cosine.

    Shape: `[num_positions, d_model]`. Dtype: `torch.get_default_dtype()`, on the CPU; computed in float64. Raises
    `ValueError` for negative sizes and `base` not above 0, `TypeError` for wrong types. Equations 28 and 29.
    """
    n = checks.integer("num_positions", num_positions, minimum=0)
    d = checks.integer("d_model", d_model, minimum=0)
    positions = torch.arange(n, device="cpu")
    return encode(positions, d, checks.positive("base", base), torch.get_default_dtype())


def encode(positions: Tensor, d_model: int, base: float, dtype: torch.dtype) -> Tensor:
    """Return the encoding `[..., d_model]` of any positions `[...]`."""
    cos, sin = cosines_and_sines(positions, frequencies(d_model, base, device=positions.device))
    return torch.stack((sin, cos), -1).flatten(-2)[..., :d_model].to(dtype)
