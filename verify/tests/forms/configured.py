"""A network whose config has a name of the width that elsewhere is that of the hidden layer; right."""

import torch
from torch import nn
from torch.nn import functional as F


class FeedForward(nn.Module):
    def __init__(self, params):
        super().__init__()
        self.first = nn.Linear(params.hidden_dim, params.feed_forward_dim)
        self.second = nn.Linear(params.feed_forward_dim, params.hidden_dim)

    def forward(self, x):
        return self.second(F.gelu(self.first(x)))


class MultiHeadAttention(nn.Module):
    def __init__(self, params):
        super().__init__()
        self.heads = nn.ModuleList(OneHead(params) for _ in range(params.n_head))
        self.o_w = nn.Linear(params.hidden_dim, params.hidden_dim, bias=False)

    def forward(self, query, key, value):
        return self.o_w(torch.cat([head(query, key, value) for head in self.heads], -1))


class OneHead(nn.Module):
    def __init__(self, params):
        super().__init__()
        width = params.hidden_dim // params.n_head
        self.q_w, self.k_w, self.v_w = (nn.Linear(params.hidden_dim, width, bias=False) for _ in range(3))

    def forward(self, query, key, value):
        q, k, v = self.q_w(query), self.k_w(key), self.v_w(value)
        return (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1) @ v
