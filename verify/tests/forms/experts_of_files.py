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


class GivenMoE(nn.Module):
    """Experts and router are made elsewhere; tokens come in rows."""

    axis = -1

    def __init__(self, experts: list[nn.Module], gate: nn.Module, top_k: int):
        super().__init__()
        self.experts, self.gate, self.top_k = nn.ModuleList(experts), gate, top_k

    def forward(self, inputs):
        top, chosen = (x[..., : self.top_k] for x in self.gate(inputs).sort(dim=-1, descending=True, stable=True))
        weights, y = top.softmax(self.axis), torch.zeros_like(inputs)
        for i, expert in enumerate(self.experts):
            rows, place = torch.where(chosen == i)
            y[rows] += weights[rows, place, None] * expert(inputs[rows])
        return y


class GivenMoEOverTokens(GivenMoE):
    axis = 0


class StackedMoE(nn.Module):
    def __init__(self, dim, intermediate_size, num_experts, top_k=2):
        super().__init__()
        self.top_k = top_k
        self.gate = nn.Linear(dim, num_experts, bias=False)
        self.w1 = nn.Parameter(torch.zeros(num_experts, intermediate_size, dim))
        self.w2 = nn.Parameter(torch.zeros(num_experts, dim, intermediate_size))
        self.w3 = nn.Parameter(torch.zeros(num_experts, intermediate_size, dim))

    def hidden(self, gate, value):
        return nn.functional.silu(gate) * value

    def forward(self, x):
        top, chosen = (y[..., : self.top_k] for y in self.gate(x).sort(dim=-1, descending=True, stable=True))
        gate, value = (torch.einsum("...d,efd->...ef", x, w) for w in (self.w1, self.w3))
        answers = torch.einsum("...ef,edf->...ed", self.hidden(gate, value), self.w2)
        picked = answers.gather(-2, chosen[..., None].expand(*chosen.shape, x.shape[-1]))
        return (top.softmax(-1)[..., None] * picked).sum(-2)


class SwappedStackedMoE(StackedMoE):
    def hidden(self, gate, value):
        return nn.functional.silu(value) * gate


class ListedMoE(StackedMoE):
    def __init__(self, dim, intermediate_size, num_experts, top_k=2):
        nn.Module.__init__(self)
        self.top_k = top_k
        self.gate = nn.Linear(dim, num_experts, bias=False)
        sizes = ((dim, intermediate_size), (dim, intermediate_size), (intermediate_size, dim))
        self.fc1, self.fc2, self.fc3 = (
            nn.ModuleList(nn.Linear(*pair, bias=False) for _ in range(num_experts)) for pair in sizes
        )

    def forward(self, x):
        top, chosen = (y[..., : self.top_k] for y in self.gate(x).sort(dim=-1, descending=True, stable=True))
        y = torch.zeros_like(x)
        for i, (one, two, three) in enumerate(zip(self.fc1, self.fc2, self.fc3, strict=True)):
            share = (top.softmax(-1) * (chosen == i)).sum(-1, keepdim=True)
            y = y + share * three(self.hidden(one(x), two(x)))
        return y
