"""GPT-NeoX's pairing of halves."""

import torch

CLAIMS = {"conventions": {"rope.pairing": "half"}}


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((b, -a), dim=-1)


def rope(x, positions, *, base=10000.0):
    if positions.ndim != 1:
        raise ValueError("positions must be [n]")
    inv_freq = 1.0 / base ** (torch.arange(0, x.shape[-1], 2).double() / x.shape[-1])
    freqs = positions.double()[:, None] * inv_freq
    angle = torch.cat((freqs, freqs), dim=-1)
    return (x * angle.cos() + rotate_half(x) * angle.sin()).to(x.dtype)
