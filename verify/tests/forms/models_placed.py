"""Language models that hold their caches inside, and are told where tokens stand."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class ModelArgs:
    def __init__(self, dim=64, n_layers=2, n_heads=4, vocab_size=1000, block_size=256):
        self.dim, self.n_layers, self.n_heads = dim, n_layers, n_heads
        self.vocab_size, self.block_size = vocab_size, block_size


class Cache(nn.Module):
    def __init__(self, batch, length, heads, width, dtype):
        super().__init__()
        self.register_buffer("k", torch.zeros(batch, heads, length, width, dtype=dtype), persistent=False)
        self.register_buffer("v", torch.zeros(batch, heads, length, width, dtype=dtype), persistent=False)

    def update(self, places, k, v):
        self.k[:, :, places], self.v[:, :, places] = k, v
        return self.k, self.v


class Attention(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.heads, self.cache = args.n_heads, None
        self.wqkv = nn.Linear(args.dim, 3 * args.dim, bias=False)
        self.wo = nn.Linear(args.dim, args.dim, bias=False)

    def forward(self, x, mask, input_pos):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.wqkv(x).chunk(3, -1))
        k, v = self.cache.update(input_pos, k, v)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.wo(y.transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    """Caches are set up first; positions come as a tensor."""

    def __init__(self, args: ModelArgs):
        super().__init__()
        self.args, self.mask = args, None
        self.tok_embeddings = nn.Embedding(args.vocab_size, args.dim)
        self.places = nn.Embedding(args.block_size, args.dim)
        self.layers = nn.ModuleList([Attention(args) for _ in range(args.n_layers)])
        self.output = nn.Linear(args.dim, args.vocab_size, bias=False)

    def setup_caches(self, max_batch_size, max_seq_length):
        for layer in self.layers:
            width = self.args.dim // self.args.n_heads
            layer.cache = Cache(max_batch_size, max_seq_length, self.args.n_heads, width, self.output.weight.dtype)
        self.mask = torch.ones(max_seq_length, max_seq_length, dtype=torch.bool).tril()

    def forward(self, idx, input_pos=None):
        assert self.mask is not None, "caches must be set up first"
        x = self.tok_embeddings(idx) + self.places(input_pos)
        for layer in self.layers:
            x = x + layer(x, self.mask[None, None, input_pos], input_pos)
        return self.output(x)


class StartingTransformer(nn.Module):
    """Keys and values lie in tensors of its own; the first position comes as a number."""

    def __init__(self, args: ModelArgs):
        super().__init__()
        self.heads, self.kept = args.n_heads, {}
        self.tok_embeddings = nn.Embedding(args.vocab_size, args.dim)
        self.places = nn.Embedding(args.block_size, args.dim)
        self.wqkv = nn.Linear(args.dim, 3 * args.dim, bias=False)
        self.output = nn.Linear(args.dim, args.vocab_size, bias=False)

    def at(self, start_pos, n):
        return torch.arange(start_pos, start_pos + n)

    def forward(self, tokens, start_pos: int):
        n = tokens.shape[1]
        x = self.tok_embeddings(tokens) + self.places(self.at(start_pos, n))
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.wqkv(x).chunk(3, -1))
        if start_pos:
            k, v = torch.cat((self.kept["k"], k), 2), torch.cat((self.kept["v"], v), 2)
        self.kept = {"k": k, "v": v}
        hidden = torch.ones(n, start_pos + n, dtype=torch.bool).triu(start_pos + 1)
        scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(hidden, -torch.inf)
        return self.output(x + (scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
