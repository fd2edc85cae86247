"""Rotary positions in complex numbers, with Llama 3's base."""

import torch

THETA = 500000.0


def rope(x, positions):
    if positions.dim() != 1:
        raise ValueError("positions must be one-dimensional")
    half = torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1]
    angles = torch.outer(positions.double(), THETA**-half)
    turn = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(torch.stack(x.double().chunk(2, dim=-1), dim=-1))
    return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)
