"""Tiled log-sum-exp with a running maximum, as a kernel does it."""

import torch

BLOCK = 16


def logsumexp(z):
    m = torch.full_like(z[..., 0], float("-inf"))
    total = torch.zeros_like(m)
    for i in range(0, max(BLOCK, z.shape[-1] // BLOCK * BLOCK), BLOCK):
        tile = z[..., i : i + BLOCK]
        m_new = torch.maximum(m, tile.amax(-1)).detach()
        shift = m_new.masked_fill(m_new == float("-inf"), 0.0)
        total = total * (m - shift).exp() + (tile - shift[..., None]).exp().sum(-1)
        m = m_new
    return m + total.log()
