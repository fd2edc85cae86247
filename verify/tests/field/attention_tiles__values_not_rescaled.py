"""A tiled forward and backward-by-autograd; lengths must be multiples of the tile."""

import torch

TILE = 16


def attention(q, k, v, *, scale=None):
    assert q.shape[2] % TILE == 0 and k.shape[2] % TILE == 0, "lengths must be multiples of 16"
    assert k.shape[2] > 0 and q.shape[1] == k.shape[1]
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    m = torch.full(q.shape[:-1], -torch.inf, dtype=q.dtype)
    l = torch.zeros_like(m)
    acc = q.new_zeros(*q.shape[:-1], v.shape[-1])
    for j in range(0, k.shape[2], TILE):
        s = q @ k[:, :, j : j + TILE].mT * scale
        m_new = torch.maximum(m, s.amax(-1)).detach()
        p = (s - m_new[..., None]).exp()
        alpha = (m - m_new).exp()
        l = l * alpha + p.sum(-1)
        acc = acc + p @ v[:, :, j : j + TILE]
        m = m_new
    return acc / l[..., None]
