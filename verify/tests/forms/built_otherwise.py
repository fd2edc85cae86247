"""Layers and models whose constructors ask for their sizes, and for more, in other ways."""

from __future__ import annotations

import itertools

import torch
from torch import nn
from torch.nn import functional as F

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


class Attention(nn.Module):
    def __init__(self, nx, n_ctx, config, scale=False):
        super().__init__()
        self.n_head, self.scale = config.n_head, scale
        self.c_attn, self.c_proj = nn.Linear(nx, 3 * nx), nn.Linear(nx, nx)
        self.register_buffer("hidden", torch.ones(n_ctx, n_ctx, dtype=torch.bool).triu(1))

    def forward(self, x):
        n = x.shape[1]
        q, k, v = (y.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for y in self.c_attn(x).chunk(3, -1))
        scores = q @ k.transpose(-2, -1)
        if self.scale:
            scores = scores / q.shape[-1] ** 0.5
        weights = scores.masked_fill(self.hidden[:n, :n], -torch.inf).softmax(-1)
        return self.c_proj((weights @ v).transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, n_state, config):
        super().__init__()
        nx = config.n_embd
        self.fc, self.proj, self.act = nn.Linear(nx, n_state), nn.Linear(n_state, nx), ACTIVATIONS[config.act_fn]

    def forward(self, x):
        return self.proj(self.act(self.fc(x)))


class PostNormBlock(nn.Module):
    def __init__(self, n_ctx, config, scale=False):
        super().__init__()
        self.attn, self.ln_1 = Attention(config.n_embd, n_ctx, config, scale), nn.LayerNorm(config.n_embd)
        self.mlp, self.ln_2 = MLP(4 * config.n_embd, config), nn.LayerNorm(config.n_embd)

    def forward(self, x):
        x = self.ln_1(x + self.attn(x))
        return self.ln_2(x + self.mlp(x))


class BlockOfHeads(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        size = d_model // n_heads
        self.heads = nn.ModuleList(
            nn.ModuleDict({name: nn.Linear(d_model, size) for name in ("query", "key", "value")})
            for _ in range(n_heads)
        )
        self.out = nn.Linear(d_model, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.network = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        y = self.norm1(x)
        found = [
            F.scaled_dot_product_attention(head["query"](y), head["key"](y), head["value"](y)) for head in self.heads
        ]
        x = x + self.out(torch.cat(found, -1))
        return x + self.network(self.norm2(x))


class SmallLMHeadModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.wte, self.attn = nn.Embedding(config.vocab_size, config.n_embd), Attention(config.n_embd, 256, config)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, input_ids, lm_labels=None):
        x = self.wte(input_ids)
        logits = self.lm_head(x + self.attn(x))
        if lm_labels is None:
            return logits
        return F.cross_entropy(logits.flatten(0, 1), lm_labels.flatten(), ignore_index=-1)


class NoisyLM(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.table, self.head = nn.Embedding(vocab_size, d_model), nn.Linear(d_model, vocab_size)

    def forward(self, idx):
        x = self.table(idx)
        return self.head(x + torch.randn_like(x))


class UnbiasedMLP(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.up, self.down = nn.Linear(dim, hidden_dim, bias=False), nn.Linear(hidden_dim, dim, bias=False)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class TiedLMHead(nn.Module):
    def __init__(self, embedding_weights):
        super().__init__()
        self.decoder = nn.Linear(*embedding_weights.shape[::-1], bias=False)
        self.decoder.weight = embedding_weights

    def forward(self, hidden):
        return self.decoder(hidden)


class LayerNorm(nn.Module):
    def __init__(self, n_state, e=1e-5):
        super().__init__()
        self.e, self.g, self.b = e, nn.Parameter(torch.ones(n_state)), nn.Parameter(torch.zeros(n_state))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        return self.g * centred / (centred.square().mean(-1, keepdim=True) + self.e).sqrt() + self.b


class ForgetfulAttention(nn.Module):
    """Its mask of one call stays in its buffer."""

    def __init__(self, d_model, num_heads, max_len):
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.register_buffer("hidden", torch.ones(1, 1, max_len, max_len, dtype=torch.bool).triu(1))

    def forward(self, x, mask=None):
        b, n, _ = x.shape
        hidden = self.hidden[:, :, :n, :n]
        if mask is not None:
            hidden |= mask.view(b, 1, 1, n)
        q, k, v = (y.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=~hidden)
        return self.out(y.transpose(1, 2).flatten(2))


class TurnedByPairsAttention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head, self.c_attn = n_head, nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x, rope, mask, max_seq_length):
        q, k, v = (y.unflatten(-1, (self.n_head, -1)) for y in self.c_attn(x).chunk(3, -1))
        q, k = apply_rope(q, rope), apply_rope(k, rope)
        y = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)), attn_mask=mask)
        return self.c_proj(y.transpose(1, 2).flatten(2))


def build_rope_cache(seq_len, n_elem, dtype, device, base=10000):
    theta = base ** (-torch.arange(0, n_elem, 2, dtype=torch.float32, device=device) / n_elem)
    angles = torch.outer(torch.arange(seq_len, dtype=torch.float32, device=device), theta)
    return torch.stack((angles.cos(), angles.sin()), -1).to(dtype)


def apply_rope(x, rope_cache):
    a, b = x[..., 0::2], x[..., 1::2]
    cos, sin = rope_cache[: x.shape[1]].view(1, x.shape[1], 1, -1, 2).unbind(-1)
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(3)


class Swish(nn.Module):
    def forward(self, feat):
        return feat * torch.sigmoid(feat)


class LabelSmoothCE(nn.Module):
    def __init__(self, lb_smooth=0.1, ignore_index=-100):
        super().__init__()
        self.lb_smooth, self.ignored = lb_smooth, ignore_index

    def forward(self, logits, label):
        return F.cross_entropy(logits, label, label_smoothing=self.lb_smooth, ignore_index=self.ignored)


class SmoothedCEOfSequences(nn.Module):
    def __init__(self, eps=0.1):
        super().__init__()
        self.eps = eps

    def forward(self, inputs, targets, lengths):
        real = torch.arange(inputs.shape[1]) < lengths[:, None]
        return F.cross_entropy(inputs[real], targets[real], label_smoothing=self.eps)


def taylor_softmax(x, dim=-1):
    y = 1 + x + x**2 / 2
    return y / y.sum(dim, keepdim=True)


class CosineWarmupRestarts:
    def __init__(self, optimizer, first_cycle_steps, max_lr=0.1, min_lr=0.0, warmup_steps=0):
        assert warmup_steps < first_cycle_steps
        self.optimizer, self.sizes, self.at = optimizer, (first_cycle_steps, max_lr, min_lr, warmup_steps), -1
        self.step()

    def step(self):
        total, most, least, warmup = self.sizes
        self.at = (self.at + 1) % total
        share = torch.tensor((self.at - warmup) / (total - warmup) * torch.pi, dtype=torch.float64)
        rising = self.at / warmup if self.at < warmup else float(1 + torch.cos(share)) / 2
        self.optimizer.param_groups[0]["lr"] = least + (most - least) * rising


def top_k_logits(logits, k):
    least = logits.topk(k).values[:, -1].item()
    return torch.where(logits < least, torch.full_like(logits, -1e10), logits)


class Encoder:
    """Byte pairs of one token at a time, spelt in letters of which each stands for a byte."""

    def __init__(self, encoder, bpe_merges):
        self.encoder, self.ranks = encoder, {pair: rank for rank, pair in enumerate(bpe_merges)}
        self.byte_encoder = {byte: chr(256 + byte) for byte in range(256)}

    def bpe(self, token):
        parts = list(token)
        while len(parts) > 1:
            pair = min(itertools.pairwise(parts), key=lambda two: self.ranks.get(two, len(self.ranks)))
            if pair not in self.ranks:
                break
            joined = []
            for part in parts:
                if joined and joined[-1:] == [pair[0]] and part == pair[1]:
                    joined[-1] = pair[0] + part + "\n"
                else:
                    joined.append(part)
            parts = [part.rstrip("\n") for part in joined]
        return " ".join(parts)


class NoamFromTheStart:
    def __init__(self, optimizer, d_model, n_warmup_steps=4000):
        self.optimizer, self.width, self.warmup, self.at = optimizer, d_model, n_warmup_steps, 0
        self.step()

    def step(self):
        self.at += 1
        rate = self.width**-0.5 * min(self.at**-0.5, self.at * self.warmup**-1.5)
        self.optimizer.param_groups[0]["lr"] = rate


class ExpandingBlock(nn.Module):
    def __init__(self, input_dims, heads, forward_expansion, dropout_proba):
        super().__init__()
        self.heads, self.drop = heads, nn.Dropout(dropout_proba)
        self.q, self.k, self.v, self.out = (nn.Linear(input_dims, input_dims) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(input_dims), nn.LayerNorm(input_dims)
        inner = forward_expansion * input_dims
        self.network = nn.Sequential(nn.Linear(input_dims, inner), nn.GELU(), nn.Linear(inner, input_dims))

    def forward(self, x):
        y = self.norm1(x)
        q, k, v = (f(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        x = x + self.drop(self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)))
        return x + self.drop(self.network(self.norm2(x)))
