"""Multi-head self-attention as a module with one fused projection."""

import torch
import torch.nn.functional as F
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, d, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.proj = nn.Linear(d, d, bias=False)

    def forward(self, x):
        B, n, d = x.shape
        q, k, v = (t.view(B, n, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(d, dim=2))
        s = (q @ k.transpose(-2, -1)) * (d // self.heads) ** -0.5
        if self.causal:
            s = s.masked_fill(torch.tril(torch.ones(n, n), diagonal=1) == 0, float("-inf"))
        y = F.softmax(s, dim=-1) @ v
        return self.proj(y.transpose(1, 2).contiguous().view(B, n, d))


def multi_head_attention(x, w_q, w_k, w_v, w_o, *, num_heads, is_causal=False):
    d = x.shape[-1]
    assert w_q.shape == w_k.shape == w_v.shape == w_o.shape == (d, d)
    module = SelfAttention(d, num_heads, is_causal).to(x.dtype)
    weights = {"qkv.weight": torch.cat([w_q, w_k, w_v], dim=1).T, "proj.weight": w_o.T}
    return torch.func.functional_call(module, weights, (x,))
