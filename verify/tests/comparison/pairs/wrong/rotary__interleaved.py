import torch


def rotate(x):
    length, width = x.shape[1], x.shape[3]
    angle = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, width, 2) / width)
    cos, sin = (f(angle)[None, :, None, :].to(x.dtype) for f in (torch.cos, torch.sin))
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).flatten(-2)
