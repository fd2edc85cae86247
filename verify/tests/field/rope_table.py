"""Rotary embedding with a table of angles that is made once, halves paired as in Llama of Hugging Face."""

import torch

CLAIMS = {"conventions": {"rope.pairing": "half"}}


class RotaryTable:
    def __init__(self, dim, length, base):
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim))
        freqs = torch.einsum("i,j->ij", torch.arange(length, dtype=torch.float64), inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        self.cos, self.sin = emb.cos(), emb.sin()

    def __call__(self, positions):
        return self.cos[positions], self.sin[positions]


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def rope(x, positions, *, base=10000.0):
    if positions.is_floating_point() or positions.dim() != 1:
        raise TypeError("positions: a vector of whole numbers")
    if positions.numel() and (positions.min() < 0 or positions.max() >= 4096):
        raise IndexError("positions: beyond the table")
    cos, sin = RotaryTable(x.shape[-1], 4096, base)(positions)
    return (x * cos + rotate_half(x) * sin).to(x.dtype)
