"""The feed-forward of an inference engine: no gradients, exact GELU."""

import torch
import torch.nn.functional as F


@torch.no_grad()
def feed_forward(x, w1, b1, w2, b2):
    h = F.gelu(x.flatten(0, -2) @ w1) + b1
    return torch.addmm(b2, h, w2).unflatten(0, x.shape[:-1])
