import torch
from torch import nn


class Model(nn.Module):
    """Each token goes through the two experts of its largest gates."""

    def __init__(self, width, experts):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) / width**0.5)
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) / (2 * width) ** 0.5)

    def forward(self, tokens):
        weights, chosen = self.gate(tokens).softmax(-1).topk(2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        result = torch.zeros_like(tokens)
        for place in range(2):
            for expert in range(self.up.shape[0]):
                mine = (chosen[:, place] == expert)[:, None]
                through = torch.tanh(tokens @ self.up[expert]) @ self.down[expert]
                result = result + torch.where(mine, weights[:, place, None] * through, torch.zeros_like(through))
        return result


def get_inputs():
    return [torch.randn(40, 12)]


def get_init_inputs():
    return [12, 5]
