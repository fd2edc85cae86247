"""Tokens are sorted by expert, and their results added where they came from."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) / width**0.5)
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) / (2 * width) ** 0.5)

    def forward(self, tokens):
        weights, chosen = self.gate(tokens).softmax(-1).topk(2, -1)
        weights = (weights / weights.sum(-1, keepdim=True)).flatten()
        order = chosen.flatten().argsort(stable=True)
        counts = torch.bincount(chosen.flatten(), minlength=self.up.shape[0]).tolist()
        parts = tokens[order // 2].split(counts)
        through = [torch.tanh(part @ up) @ down for part, up, down in zip(parts, self.up, self.down, strict=True)]
        return torch.zeros_like(tokens).index_add(0, order // 2, torch.cat(through) * weights[order, None])
