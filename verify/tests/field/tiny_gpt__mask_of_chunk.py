"""A small GPT with learned positions and a cache."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.fc1, self.fc2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x, past):
        q, k, v = (t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.ln1(x)).chunk(3, dim=2))
        if past is not None:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        n, m = q.shape[2], k.shape[2]
        mask = torch.ones(n, m, dtype=torch.bool).tril()
        s = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, float("-inf"))
        x = x + self.out((s.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x)))), (k, v)


class GPT(nn.Module):
    def __init__(self, vocab=23, d=16, heads=2, layers=2, context=128):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, d), nn.Embedding(context, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)

    def forward(self, ids, past_key_values=None, use_cache=False):
        start = 0 if past_key_values is None else past_key_values[0][0].shape[2]
        x = self.wte(ids) + self.wpe(torch.arange(start, start + ids.shape[1]))
        cache = []
        for i, block in enumerate(self.blocks):
            x, kv = block(x, None if past_key_values is None else past_key_values[i])
            cache.append(kv)
        logits = self.head(self.norm(x))
        return SimpleNamespace(logits=logits, past_key_values=tuple(cache)) if use_cache else logits


def causal_lm():
    torch.manual_seed(0)
    return GPT().eval()
