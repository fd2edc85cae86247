"""An expert takes so many tokens, and those that come later get nothing of it."""

import torch
from torch import nn

CAPACITY = 1.75


class ModelNew(nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) / width**0.5)
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) / (2 * width) ** 0.5)

    def forward(self, tokens):
        n, experts = tokens.shape[0], self.up.shape[0]
        weights, chosen = self.gate(tokens).softmax(-1).topk(2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        result = torch.zeros_like(tokens)
        most = int(CAPACITY * 2 * n / experts) + 1
        for expert in range(experts):
            rows, places = torch.nonzero(chosen == expert, as_tuple=True)
            rows, places = rows[:most], places[:most]
            through = torch.tanh(tokens[rows] @ self.up[expert]) @ self.down[expert]
            result = result.index_add(0, rows, weights[rows, places, None] * through)
        return result
