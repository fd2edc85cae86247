"""GPT-2's GELU."""

import math

import torch


def gelu(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.44715 * x**3)))
