"""Weights as quotients of products, which are 0 / 0 once the product is too small."""

import torch


def recurrence(decay, drive):
    whole = torch.sigmoid(decay).cumprod(1)
    return whole * (drive / whole.clamp_min(1e-6)).cumsum(1)
