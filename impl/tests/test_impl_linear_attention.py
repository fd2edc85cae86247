"""Linear attention: its three forms are one, and later keys may hold anything."""

import torch

from veriformer.impl import linear_attention


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def test_later_keys_may_hold_anything():
    q, k, v = draw(3, 1, 2, 6, 4)
    before = linear_attention(q, k, v, is_causal=True)
    k[:, :, 4:], v[:, :, 5:] = torch.nan, torch.inf
    after = linear_attention(q, k, v, is_causal=True)
    assert ((after[:, :, :4] - before[:, :, :4]).abs() <= 2.0**-44).all()


def test_small_features_keep_their_digits():
    q, k, v = torch.zeros(1, 1, 1, 1), torch.tensor([-30.0, -31.0])[None, None, :, None], torch.eye(2)[None, None]
    weights = linear_attention(q, k, v)[0, 0, 0]
    assert abs(float(weights[0] / weights[1]) - torch.e) < 2.0**-18
