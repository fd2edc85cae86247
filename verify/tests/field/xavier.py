"""Glorot's normal initialisation."""

import math

import torch


def xavier_normal(n_in, n_out, *, generator=None):
    return torch.randn(n_in, n_out, generator=generator) * math.sqrt(2.0 / (n_in + n_out))
