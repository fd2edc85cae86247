"""Attention that knows no heads, heads as modules by themselves, and sizes that a constructor changes."""

import math

import torch
from torch import nn


class DotProductAttention(nn.Module):
    def forward(self, queries, keys, values, mask=None):
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(queries.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9 if scores.dtype != torch.float16 else -6e4)
        return torch.bmm(scores.softmax(-1), values)


def attention(q, k, v, mask=None):
    if q.ndim != 2:
        raise ValueError("q: expected one head")
    scores = q @ k.T / q.shape[-1] ** 0.5
    return (scores if mask is None else scores + mask).softmax(-1) @ v


class Head(nn.Module):
    def __init__(self, head_size, n_embd):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)

    def forward(self, x):
        k, q, n = self.key(x), self.query(x), x.shape[1]
        scores = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        scores = scores.masked_fill(torch.ones(n, n).tril() == 0, float("-inf"))
        return scores.softmax(-1) @ self.value(x)


class MultiHeadAttention(nn.Module):
    def __init__(self, n_head, n_embd):
        super().__init__()
        self.heads = nn.ModuleList(Head(n_embd // n_head, n_embd) for _ in range(n_head))
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        return self.proj(torch.cat([h(x) for h in self.heads], -1))


class RMSNorm(nn.Module):
    def __init__(self, d, bias=False):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(d))
        self.offset = nn.Parameter(torch.zeros(d)) if bias else 0.0

    def forward(self, x):
        return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * self.scale + self.offset


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, multiple_of):
        super().__init__()
        hidden_dim = multiple_of * -(-int(2 * hidden_dim / 3) // multiple_of)
        self.w1 = nn.Linear(dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden_dim, bias=False)

    def forward(self, x):
        return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))


class LayerNorm(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.eps, self.device = config.rms_norm_eps, config.device
        self.weight = nn.Parameter(torch.ones(config.hidden_size, device=self.device))
        self.bias = nn.Parameter(torch.zeros(config.hidden_size, device=self.device))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        return centred * (centred.square().mean(-1, keepdim=True) + self.eps).rsqrt() * self.weight + self.bias


class GemmaRMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        normed = x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + self.eps)
        return (normed * (1.0 + self.weight.float())).type_as(x)


class PartialRMSNorm(nn.Module):
    def __init__(self, d, p=-1.0, eps=1e-6):
        super().__init__()
        self.d, self.p, self.eps = d, p, eps
        self.scale = nn.Parameter(torch.ones(d))

    def forward(self, x):
        known = x if self.p < 0 else x[..., : int(self.p * self.d)]
        return x * (known.square().sum(-1, keepdim=True) / known.shape[-1] + self.eps) ** -0.5 * self.scale
