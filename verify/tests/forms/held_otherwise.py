"""Layers whose weights, sizes and parts are held in other ways than in submodules and constructor arguments; right."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class Settings:
    """A config whose sizes hide in its keywords."""

    def __init__(self, hidden_size=512, **kwargs):
        self.hidden_size = hidden_size
        self.num_attention_heads = kwargs.get("num_attention_heads", 8)
        self.intermediate_size = kwargs.get("intermediate_size", 4096)
        self.sharpness = 1.0


class MyConfig(Settings):
    """The one class of this file that is a config by its name."""


class Affine(nn.Module):
    """A linear map of one's own."""

    def __init__(self, n_in, n_out):
        super().__init__()
        self.w = nn.Parameter(torch.randn(n_out, n_in))

    def forward(self, x):
        return x @ self.w.T


class GatedMLP(nn.Module):
    """Linear maps of one's own, and sizes in a config that hides them."""

    def __init__(self, config: MyConfig):
        super().__init__()
        d, f = config.hidden_size, config.intermediate_size
        self.gate, self.up, self.down = Affine(d, f), Affine(d, f), Affine(f, d)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class ConfiguredAttention(nn.Module):
    """Its number of heads hides, and no usual name says what else it reads of its config."""

    def __init__(self, config: MyConfig):
        super().__init__()
        self.heads, self.sharpness = config.num_attention_heads, config.sharpness
        d = config.hidden_size
        self.q, self.k, self.v, self.out = (nn.Linear(d, d, bias=False) for _ in range(4))

    def forward(self, x):
        q, k, v = (part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.q, self.k, self.v))
        weights = (self.sharpness * q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class MLP(nn.Module):
    """Matrices and vectors among its own parameters."""

    def __init__(self, dim_model, d_mlp):
        super().__init__()
        self.w_in, self.b_in = nn.Parameter(torch.randn(d_mlp, dim_model)), nn.Parameter(torch.zeros(d_mlp))
        self.w_out, self.b_out = nn.Parameter(torch.randn(dim_model, d_mlp)), nn.Parameter(torch.zeros(dim_model))

    def forward(self, residual):
        return F.linear(F.relu(F.linear(residual, self.w_in, self.b_in)), self.w_out, self.b_out)


class Attention(nn.Module):
    """Attention with a matrix for each head, causal by a mask of its own."""

    def __init__(self, d_model, d_head, n_heads):
        super().__init__()
        self.W_Q, self.W_K, self.W_V = (nn.Parameter(torch.randn(n_heads, d_model, d_head)) for _ in range(3))
        self.b_Q = nn.Parameter(torch.zeros(n_heads, d_head))
        self.W_O = nn.Parameter(torch.randn(n_heads, d_head, d_model))

    def forward(self, normalized):
        q = torch.einsum("bnd,hde->bhne", normalized, self.W_Q) + self.b_Q[:, None]
        k = torch.einsum("bnd,hde->bhne", normalized, self.W_K)
        v = torch.einsum("bnd,hde->bhne", normalized, self.W_V)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        hidden = torch.ones_like(scores, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
        return torch.einsum("bhne,hed->bnd", weights @ v, self.W_O)


class FusedAttention(nn.Module):
    """The map of the result before the one of all three, and two masks: of tokens, and of what comes later."""

    def __init__(self, model_dim, num_head):
        super().__init__()
        self.heads, self.proj = num_head, nn.Linear(model_dim, model_dim)
        self.qkv = nn.Linear(model_dim, 3 * model_dim)

    def forward(self, x, src_pad_mask=None, future_mask=None):
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if src_pad_mask is not None:
            scores = scores.masked_fill(src_pad_mask[:, None, None] == 0, -1e9)
        if future_mask is not None:
            scores = scores.masked_fill(future_mask == 0, -1e9)
        return self.proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class HeadAttention(nn.Module):
    """Its one size of heads is their number."""

    def __init__(self, hidden_size, head_size=4):
        super().__init__()
        self.heads = head_size
        self.q, self.k, self.v, self.out = (nn.Linear(hidden_size, hidden_size, bias=False) for _ in range(4))

    def forward(self, x):
        q, k, v = (part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.q, self.k, self.v))
        weights = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class Rotary(nn.Module):
    """Turns features at positions that it is given."""

    def __init__(self, dim, max_seq_len=256, theta=10000.0):
        super().__init__()
        turns = torch.outer(torch.arange(max_seq_len).float(), theta ** (-torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("cos_table", turns.cos().repeat_interleave(2, -1), persistent=False)
        self.register_buffer("sin_table", turns.sin().repeat_interleave(2, -1), persistent=False)

    def forward(self, x, token_positions):
        cos, sin = self.cos_table[token_positions], self.sin_table[token_positions]
        across = torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)
        return (x * cos + across * sin).to(x.dtype)


class TurningAttention(nn.Module):
    """Turns queries and keys by a rotary embedding of its own."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads, self.qkv = num_heads, nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj, self.turn = nn.Linear(d_model, d_model, bias=False), Rotary(d_model // num_heads)

    def forward(self, x):
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        at = torch.arange(x.shape[1])
        y = F.scaled_dot_product_attention(self.turn(q, at), self.turn(k, at), v)
        return self.proj(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """A part that is given to the layer below."""

    def __init__(self, size, ffn_size):
        super().__init__()
        self.one, self.two = nn.Linear(size, ffn_size), nn.Linear(ffn_size, size)

    def forward(self, x):
        return self.two(F.relu(self.one(x)))


class EncoderLayer(nn.Module):
    """A block that is given its parts."""

    def __init__(self, size, self_attn: FusedAttention, feed_forward, dropout):
        super().__init__()
        self.self_attn, self.feed_forward, self.drop = self_attn, feed_forward, nn.Dropout(dropout)
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(self, x):
        x = x + self.drop(self.self_attn(self.norm1(x)))
        return x + self.drop(self.feed_forward(self.norm2(x)))


class HeadByHeadBlock(nn.Module):
    """Block with a fused projection of queries, keys and values, for one head after the other."""

    def __init__(self, hidden_dim, ff_dim, num_heads):
        super().__init__()
        self.heads, self.qkv_proj = num_heads, nn.Linear(hidden_dim, 3 * hidden_dim, bias=False)
        self.o_proj = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.network = nn.Sequential(nn.Linear(hidden_dim, ff_dim), nn.ReLU(), nn.Linear(ff_dim, hidden_dim))
        self.norm1, self.norm2 = nn.LayerNorm(hidden_dim), nn.LayerNorm(hidden_dim)

    def forward(self, x):
        q, k, v = self.qkv_proj(self.norm1(x)).unflatten(-1, (self.heads, -1)).transpose(1, 2).chunk(3, -1)
        x = x + self.o_proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.network(self.norm2(x))


class DecoderLayer(nn.Module):
    """A block that reads an encoder as well: another operation."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.own, self.other = FusedAttention(d_model, num_heads), FusedAttention(d_model, num_heads)

    def forward(self, x, encoder_output):
        return self.other(self.own(x) + encoder_output)


class Unembed(nn.Module):
    """The last layer, without a bias."""

    def __init__(self, d_model, d_vocab):
        super().__init__()
        self.weights = nn.Parameter(torch.randn(d_model, d_vocab))

    def forward(self, residual):
        return residual @ self.weights


class Generator(nn.Module):
    """The last layer with a softmax after it: another operation."""

    def __init__(self, d_model, vocab):
        super().__init__()
        self.proj = nn.Linear(d_model, vocab)

    def forward(self, x):
        return F.log_softmax(self.proj(x), -1)


class OutputLayer(nn.Module):
    """The last layer with a bias, which the contract's has not."""

    def __init__(self, d_model, vocab_size):
        super().__init__()
        self.proj = nn.Linear(d_model, vocab_size)

    def forward(self, x):
        return self.proj(x)


class Head(nn.Module):
    """A head by itself, without a projection of what it gives."""

    def __init__(self, width, head_size):
        super().__init__()
        self.key = nn.Linear(width, head_size, bias=False)
        self.query = nn.Linear(width, head_size, bias=False)
        self.value = nn.Linear(width, head_size, bias=False)

    def forward(self, x):
        scores = self.query(x) @ self.key(x).mT * self.scale(x)
        seen = torch.ones_like(scores, dtype=torch.bool).tril()
        return scores.masked_fill(~seen, -math.inf).softmax(-1) @ self.value(x)

    def scale(self, x):
        return self.key.out_features**-0.5


class HeadScaledByWidth(Head):
    """Its scores are divided by the root of the width of the model: another operation for all but one head."""

    def scale(self, x):
        return x.shape[-1] ** -0.5


class HeadsAlone(nn.Module):
    """Several heads side by side, without a projection of what they give."""

    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=False) for _ in range(3))
        self.num_heads = num_heads

    def forward(self, x):
        maps = (self.W_query, self.W_key, self.W_value)
        q, k, v = (f(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for f in maps)
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
