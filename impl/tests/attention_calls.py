"""Calls of attention to test with: every option, alone and together, at shapes that are not square, round or equal."""

import pytest
import torch

from tests.derived_bounds import random
from veriformer.impl import BACKENDS
from veriformer.impl.attention_backends.tiled import attention_in_tiles

# Those of plain PyTorch; Triton's kernels are interpreted here, which is slow, and have tests of their own.
EVERYWHERE = {name: attention for name, attention in BACKENDS.items() if name != "triton"}
ATTENTIONS = {**EVERYWHERE, "tiled by 7": attention_in_tiles(7)}
backends = pytest.mark.parametrize("attention", ATTENTIONS.values(), ids=ATTENTIONS)
B, H, G, N_Q, N_K, D_K, D_V = 2, 6, 3, 13, 19, 5, 4


def tensors(dtype=torch.float64, n_q=N_Q, n_k=N_K, d_v=D_V):
    """Return q, k, v and a cotangent."""
    q, k, v = random(B, H, n_q, D_K, seed=1), random(B, G, n_k, D_K, seed=2), random(B, G, n_k, d_v, seed=3)
    return [x.to(dtype) for x in (q, k, v, random(B, H, n_q, d_v, seed=4))]


def coin(*shape, p=0.5, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < p


def half_empty_bias():
    """Return a bias with −∞ here and there, and in whole rows."""
    bias = random(H, N_Q, N_K, seed=5).masked_fill(coin(H, N_Q, N_K, seed=6), -torch.inf)
    bias[:, 3] = bias[2, 5] = -torch.inf
    return bias


OPTIONS = {
    "plain": {},
    "scale": {"scale": -0.3},
    "no scale": {"scale": 0.0},
    "softcap": {"softcap": 0.7},
    "causal": {"is_causal": True},
    "window 1": {"is_causal": True, "window": 1},
    "window 7": {"is_causal": True, "window": 7},
    "wide window": {"is_causal": True, "window": 99},
    "mask n_q n_k": {"mask": coin(N_Q, N_K, p=0.3)},
    "mask of keys": {"mask": coin(B, 1, 1, N_K)},
    "mask of queries": {"mask": coin(B, 1, N_Q, 1)},
    "mask of heads": {"mask": coin(H, 1, N_K)},
    "mask of everything": {"mask": coin(B, H, N_Q, N_K)},
    "mask of one": {"mask": torch.ones(1, 1, dtype=torch.bool)},
    "mask of nothing": {"mask": torch.zeros(N_Q, N_K, dtype=torch.bool)},
    "bias n_q n_k": {"bias": random(N_Q, N_K)},
    "bias of heads": {"bias": random(H, 1, 1)},
    "bias of keys": {"bias": random(B, 1, 1, N_K)},
    "bias of queries": {"bias": random(1, 1, N_Q, 1)},
    "bias of everything": {"bias": random(B, H, N_Q, N_K)},
    "bias −∞": {"bias": half_empty_bias()},
    "bias, other dtype": {"bias": random(H, N_Q, N_K).to(torch.bfloat16)},
    "together": {
        "mask": coin(B, 1, N_Q, N_K, p=0.6, seed=1),
        "bias": random(H, N_Q, 1),
        "is_causal": True,
        "window": 8,
        "scale": 0.9,
        "softcap": 1.3,
    },
}


def gradients(attention, q, k, v, g, **options):
    """Return the output, then the gradients of q, k, v and bias, under the names of the oracle."""
    names = ["q", "k", "v"] + ["bias"] * ("bias" in options)
    leaves = [
        x.detach().clone().requires_grad_() for x in (q, k, v, *((options["bias"],) if "bias" in options else ()))
    ]
    if "bias" in options:
        options = {**options, "bias": leaves[3]}
    o = attention(*leaves[:3], **options)
    return {"o": o.detach(), **dict(zip(names, torch.autograd.grad(o, leaves, g), strict=True))}
