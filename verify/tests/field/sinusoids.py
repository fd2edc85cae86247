"""Sines and cosines, position by position."""

import math

import torch


def sinusoidal_encoding(num_positions, d_model):
    if d_model % 2:
        raise ValueError("d_model must be even")
    table = torch.zeros(num_positions, d_model)
    for pos in range(num_positions):
        for i in range(0, d_model, 2):
            angle = pos / 10000 ** (i / d_model)
            table[pos, i] = math.sin(angle)
            table[pos, i + 1] = math.cos(angle)
    return table
