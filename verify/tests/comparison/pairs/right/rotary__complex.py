import torch


def rotate(x):
    length, width = x.shape[1], x.shape[3]
    angle = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, width, 2) / width)
    turn = torch.polar(torch.ones_like(angle), angle)[None, :, None, :]
    wide = x if x.dtype == torch.float64 else x.float()
    a, b = wide.chunk(2, dim=-1)
    turned = torch.view_as_real(torch.complex(a, b) * turn)
    return torch.cat([turned[..., 0], turned[..., 1]], dim=-1).to(x.dtype)
