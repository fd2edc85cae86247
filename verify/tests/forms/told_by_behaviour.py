"""Masks that are demanded, a joined map with entries further out, a gated network narrower than was asked for."""

import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, d_model, heads, show_weights):
        super().__init__()
        self.heads, self.show_weights = heads, show_weights
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value, mask):
        q, k, v = (
            f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for f, x in ((self.q, query), (self.k, key), (self.v, value))
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        weights = scores.masked_fill(mask == 0, -math.inf).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, attention, pointwise_net):
        super().__init__()
        self.attention, self.pointwise_net = attention, pointwise_net
        self.first, self.second = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, mask):
        y = self.first(x)
        x = x + self.attention(y, y, y, mask)
        return x + self.pointwise_net(self.second(x))


class PointwiseNet(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.wide, self.narrow = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.narrow(torch.relu(self.wide(x)))


class Transformer(nn.Module):
    hides = staticmethod(lambda mask: mask)

    def __init__(self, src_vocab, trg_vocab, d_model, heads, show_weights=False):
        super().__init__()
        self.read, self.written = nn.Embedding(src_vocab, d_model), nn.Embedding(trg_vocab, d_model)
        self.own = Attention(d_model, heads, show_weights)
        self.across = Attention(d_model, heads, show_weights)
        self.out = nn.Linear(d_model, trg_vocab)

    def forward(self, src_token_ids, trg_token_ids, src_mask, trg_mask):
        memory, x = self.read(src_token_ids), self.written(trg_token_ids)
        x = x + self.own(x, x, x, self.hides(trg_mask))
        return self.out(x + self.across(x, memory, memory, self.hides(src_mask)))


class HidingTransformer(Transformer):
    hides = staticmethod(lambda mask: ~mask)


class TransformerThatLooksAhead(Transformer):
    hides = staticmethod(torch.ones_like)


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.to_qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        entries = self.to_qkv(x).unflatten(-1, (-1, 3, self.heads))
        q, k, v = (y.transpose(-2, -1).transpose(1, 2) for y in entries.unbind(-2))
        weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class GatedFeedForward(nn.Module):
    """Two thirds of the hidden width that is asked for, and the map out of it between those into it."""

    def __init__(self, dim, hidden_dim):
        super().__init__()
        hidden_dim = int(2 * hidden_dim / 3)
        self.w1, self.w2 = nn.Linear(dim, hidden_dim, bias=False), nn.Linear(hidden_dim, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden_dim, bias=False)

    def forward(self, x):
        return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))


def dot_product_attention(q, k, v, scale_factor=1, mask=None):
    """Scores as they are, for a caller that scales them."""
    scores = q @ k.transpose(-2, -1) * scale_factor
    return (scores if mask is None else scores.masked_fill(mask, -math.inf)).softmax(-1) @ v


class MultiHeadAttention(Attention):
    def __init__(self, d_model, heads):
        super().__init__(d_model, heads, False)

    def forward(self, pre_q, pre_k, pre_v, mask=None):
        everything = torch.ones(1, dtype=torch.bool) if mask is None else mask
        return super().forward(pre_q, pre_k, pre_v, everything)


class TokensFirstModel(nn.Module):
    """A language model over tokens [n, B], with the names of an old example."""

    def __init__(self, ntoken, ninp):
        super().__init__()
        self.emb, self.cell, self.out = nn.Embedding(ntoken, ninp), nn.GRU(ninp, ninp), nn.Linear(ninp, ntoken)

    def forward(self, src):
        return self.out(self.cell(self.emb(src))[0]).log_softmax(-1)


class CausalOnRequestLM(nn.Module):
    """A language model that goes from left to right where its constructor is told so."""

    def __init__(self, num_tokens, dim, causal=False):
        super().__init__()
        self.causal, self.emb, self.out = causal, nn.Embedding(num_tokens, dim), nn.Linear(dim, num_tokens)

    def forward(self, tokens):
        x = self.emb(tokens)[:, None]
        return self.out(nn.functional.scaled_dot_product_attention(x, x, x, is_causal=self.causal)[:, 0])
