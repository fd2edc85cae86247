"""Models of models.py, with faults in the loss and in the cache."""

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class GPTConfig:
    block_size: int = 1024
    vocab_size: int = 50304
    n_layer: int = 12
    n_head: int = 12
    n_embd: int = 768
    dropout: float = 0.1


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.n_head = config.n_head
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)

    def forward(self, x, past=None):
        q, k, v = (t.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for t in self.c_attn(x).chunk(3, -1))
        if past is not None:
            k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        n, m = q.shape[2], k.shape[2]
        hidden = torch.ones(n, m, dtype=torch.bool).triu(m - n + 1)
        scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(hidden, -torch.inf)
        return self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2)), (k, v)


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(config.n_embd), nn.LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.mlp = nn.Sequential(
            nn.Linear(config.n_embd, 2 * config.n_embd), nn.GELU(), nn.Linear(2 * config.n_embd, config.n_embd)
        )

    def forward(self, x, past=None):
        y, present = self.attn(self.ln_1(x), past)
        x = x + y
        return x + self.mlp(self.ln_2(x)), present


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        assert config.n_layer is not None
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.h = nn.ModuleList([Block(config) for _ in range(config.n_layer)])
        self.head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.h:
            x, _ = block(x)
        if targets is None:
            return self.head(x[:, [-1], :]), None
        logits = self.head(x)
        loss = F.cross_entropy(logits[:, 1:].flatten(0, 1), targets[:, :-1].flatten(), ignore_index=-1)
        return logits, loss


class CachedTransformer(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, max_seq_len):
        super().__init__()
        config = GPTConfig(max_seq_len, vocab_size, num_layers, num_heads, d_model)
        self.tokens, self.positions = nn.Embedding(vocab_size, d_model), nn.Embedding(max_seq_len, d_model)
        self.layers = nn.ModuleList([Block(config) for _ in range(num_layers)])
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, tokens, cache=None):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        new = []
        for i, layer in enumerate(self.layers):
            x, present = layer(x, None if cache is None else cache[i])
            new.append(present)
        return self.out(x), new
