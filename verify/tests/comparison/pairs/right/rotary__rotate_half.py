import torch


def rotate(x):
    length, width = x.shape[1], x.shape[3]
    angle = torch.arange(length)[:, None] / 10000.0 ** (torch.arange(0, width, 2) / width)
    angle = torch.cat([angle, angle], dim=-1)[None, :, None, :]
    a, b = x.chunk(2, dim=-1)
    return x * angle.cos().to(x.dtype) + torch.cat([-b, a], dim=-1) * angle.sin().to(x.dtype)
