"""Layers in forms that were met in public files first, each right."""

import torch
from torch import nn
from torch.nn import functional as F


class Mlp(nn.Module):
    """Two linear maps with an activation between them."""

    def __init__(self, in_features, hidden_features):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(in_features, hidden_features), nn.Linear(hidden_features, in_features)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


class VocabEmbedding(nn.Module):
    """PyTorch's embedding of a table of its own."""

    def __init__(self, vocab_size, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, dim))

    def forward(self, x):
        return F.embedding(x, self.weight)


def apply_rotary_emb(x, freqs_cis):
    """Complex pairs of [B, n, H, d], with a table of exactly n rows."""
    pairs = torch.view_as_complex(x.float().view(*x.shape[:-1], -1, 2))
    turns = freqs_cis.view(1, x.size(1), 1, pairs.size(-1))
    return torch.view_as_real(pairs * turns).flatten(3).to(x.dtype)


class RMSNorm(nn.Module):
    """The mean square in the format of its input."""

    def __init__(self, dim, eps):
        super().__init__()
        self.eps, self.gamma = eps, nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x / torch.sqrt(torch.mean(x**2, dim=-1, keepdim=True) + self.eps) * self.gamma


class Attention(nn.Module):
    """Sizes in a part of the config, and an option that has no default."""

    def __init__(self, config, vis):
        super().__init__()
        self.vis, self.heads = vis, config.transformer["num_heads"]
        self.query, self.key, self.value, self.out = (
            nn.Linear(config.hidden_size, config.hidden_size) for _ in range(4)
        )
        self.dropout = nn.Dropout(config.transformer["attention_dropout_rate"])

    def forward(self, hidden_states):
        q, k, v = (
            part(hidden_states).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        weights = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1)
        out = self.out((self.dropout(weights) @ v).transpose(1, 2).flatten(2))
        return out, weights if self.vis else None


class Mlp2(nn.Module):
    """Widths in a part of the config."""

    def __init__(self, config):
        super().__init__()
        self.fc1 = nn.Linear(config.hidden_size, config.transformer["mlp_dim"])
        self.fc2 = nn.Linear(config.transformer["mlp_dim"], config.hidden_size)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    """A length and an eps that have no defaults."""

    def __init__(self, *, n_embd, n_head, n_positions, resid_pdrop, layer_norm_epsilon):
        super().__init__()
        self.ln_1, self.ln_2 = (nn.LayerNorm(n_embd, eps=layer_norm_epsilon) for _ in range(2))
        self.heads, self.c_attn, self.c_proj = n_head, nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.register_buffer("hidden", torch.ones(n_positions, n_positions).triu(1).bool())
        self.mlp = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd), nn.Dropout(resid_pdrop)
        )

    def forward(self, x):
        n = x.shape[1]
        parts = self.c_attn(self.ln_1(x)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(self.hidden[:n, :n], float("-inf"))
        x = x + self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.ln_2(x))


class MaskedAttention(nn.Module):
    """Hides by minus infinity: a query that sees nothing has no result."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.query, self.key, self.value, self.out = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        parts = (self.query(query), self.key(key), self.value(value))
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask[:, None], -torch.inf)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
