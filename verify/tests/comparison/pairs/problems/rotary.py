import torch


def rotate(x):
    """Rotate the two halves of the last axis by position; x: [batch, length, heads, width]."""
    length, width = x.shape[1], x.shape[3]
    angle = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, width, 2) / width)
    cos, sin = (f(angle)[None, :, None, :].to(x.dtype) for f in (torch.cos, torch.sin))
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def get_inputs():
    return [torch.randn(2, 40, 3, 16)]
