"""Llama's feed-forward, without biases."""

import torch
import torch.nn.functional as F
from torch import nn


class MLP(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate_proj = nn.Linear(dim, hidden, bias=False)
        self.up_proj = nn.Linear(dim, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


def swiglu(x, w_gate, w_up, w_down):
    weights = {"gate_proj.weight": w_gate.T, "up_proj.weight": w_up.T, "down_proj.weight": w_down.T}
    return torch.func.functional_call(MLP(*w_gate.shape).to(x.dtype), weights, (x,))
