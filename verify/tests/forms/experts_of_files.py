"""Mixtures of experts whose gates are the chosen experts' part of the softmax over all, or what comes of it divided."""

import torch
from torch import nn


class Expert(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(x)))


class SparseMoE(nn.Module):
    def __init__(self, dim, d_ff, num_experts, top_k=2):
        super().__init__()
        self.top_k = top_k
        self.gate = nn.Linear(dim, num_experts, bias=False)
        self.experts = nn.ModuleList(Expert(dim, d_ff) for _ in range(num_experts))

    def best(self, scores):
        top, chosen = scores.sort(dim=-1, descending=True, stable=True)
        return top[..., : self.top_k], chosen[..., : self.top_k]

    def gates(self, scores):
        return self.best(scores.softmax(-1))

    def forward(self, x):
        weights, chosen = self.gates(self.gate(x))
        y = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            share = (weights * (chosen == i)).sum(-1, keepdim=True)
            y = y + share * expert(x)
        return y


class RenormalisedMoE(SparseMoE):
    def gates(self, scores):
        top, chosen = self.best(scores)
        return top.softmax(-1), chosen


class HalvedMoE(SparseMoE):
    """The gates of two are halved, which is neither."""

    def gates(self, scores):
        top, chosen = self.best(scores.softmax(-1))
        return top / 2, chosen
