"""Attention whose one map gives queries, keys and values head by head, and whose heads are not put back in order."""

import math

from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, hidden_dim, num_heads):
        super().__init__()
        self.heads, self.qkv_proj = num_heads, nn.Linear(hidden_dim, 3 * hidden_dim, bias=False)
        self.o_proj = nn.Linear(hidden_dim, hidden_dim, bias=False)

    def forward(self, x):
        q, k, v = self.qkv_proj(x).unflatten(-1, (self.heads, -1)).transpose(1, 2).chunk(3, -1)
        values = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(-1) @ v
        return self.o_proj(values.reshape(x.shape))
