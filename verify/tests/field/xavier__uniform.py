"""Glorot's normal initialisation."""

import math

import torch


def xavier_normal(n_in, n_out, *, generator=None):
    return (torch.rand(n_in, n_out, generator=generator) - 0.5) * math.sqrt(12.0) * math.sqrt(2.0 / (n_in + n_out))
