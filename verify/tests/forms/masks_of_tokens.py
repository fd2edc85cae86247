"""Self-attention whose masks over tokens are given in many ways, and such that applies one wrongly."""

import torch
from torch import nn


class Projected(nn.Module):
    def __init__(self, dim, num_heads=8):
        super().__init__()
        self.num_heads = num_heads
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(dim, dim, bias=False)
        self.value = nn.Linear(dim, dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def split(self, x):
        b, n = x.shape[:2]
        parts = (self.query(x), self.key(x), self.value(x))
        return [part.view(b, n, self.num_heads, -1).transpose(1, 2) for part in parts]

    def scores(self, q, k):
        return q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5

    def joined(self, weights, v):
        y = weights @ v
        return self.out(y.transpose(1, 2).flatten(2))


class KeepAttention(Projected):
    def forward(self, x, mask=None):
        q, k, v = self.split(x)
        scores = self.scores(q, k)
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None, :], -torch.inf)
        return self.joined(scores.softmax(-1), v)


class DropAttention(Projected):
    def forward(self, x, key_padding_mask=None):
        q, k, v = self.split(x)
        scores = self.scores(q, k)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], -torch.inf)
        return self.joined(scores.softmax(-1), v)


class NumberedAttention(Projected):
    def forward(self, x, attention_mask=None):
        q, k, v = self.split(x)
        scores = self.scores(q, k)
        if attention_mask is not None:
            scores = scores + (1.0 - attention_mask[:, None, None, :]) * torch.finfo(scores.dtype).min
        return self.joined(scores.softmax(-1), v)


class AddedAttention(Projected):
    def forward(self, x, attn_mask=None):
        q, k, v = self.split(x)
        scores = self.scores(q, k)
        return self.joined((scores if attn_mask is None else scores + attn_mask).softmax(-1), v)


class ClearedAttention(KeepAttention):
    """Leave the answers to padding unspecified."""

    def forward(self, x, mask=None):
        y = super().forward(x, mask)
        return y if mask is None else y * mask[..., None]


class CausalAttention(Projected):
    def forward(self, x, mask=None):
        q, k, v = self.split(x)
        scores = self.scores(q, k)
        ahead = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(ahead, torch.finfo(scores.dtype).min)
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None, :], torch.finfo(scores.dtype).min)
        return self.joined(scores.softmax(-1), v)


class LateAttention(Projected):
    """The mask comes after the softmax."""

    def forward(self, x, mask=None):
        q, k, v = self.split(x)
        weights = self.scores(q, k).softmax(-1)
        if mask is not None:
            weights = weights.masked_fill(~mask[:, None, None, :], 0.0)
        return self.joined(weights, v)


class DeafAttention(Projected):
    """The mask is taken and not used."""

    def forward(self, x, mask=None):
        q, k, v = self.split(x)
        return self.joined(self.scores(q, k).softmax(-1), v)


class NoisyAttention(Projected):
    """Its dropout is applied in evaluation mode too."""

    def __init__(self, dim, num_heads=8, dropout=0.0):
        super().__init__(dim, num_heads)
        self.dropout = dropout

    def forward(self, x):
        q, k, v = self.split(x)
        return self.joined(nn.functional.dropout(self.scores(q, k).softmax(-1), self.dropout), v)


def make_causal_mask(input_ids_shape, dtype, device, past_key_values_length=0):
    b, n = input_ids_shape
    mask = torch.full((n, n), torch.finfo(dtype).min, device=device)
    places = torch.arange(n, device=device)
    mask.masked_fill_(places < (places + 1)[:, None], 0)
    if past_key_values_length > 0:
        mask = torch.cat([torch.zeros(n, past_key_values_length, device=device), mask], -1)
    return mask.to(dtype)[None, None].expand(b, 1, n, n + past_key_values_length)


def make_late_causal_mask(input_ids_shape, dtype, device):
    b, n = input_ids_shape
    places = torch.arange(n, device=device)
    mask = torch.full((n, n), torch.finfo(dtype).min, device=device)
    return mask.masked_fill_(places <= (places + 1)[:, None], 0).to(dtype)[None, None].expand(b, 1, n, n)


def make_weak_causal_mask(input_ids_shape, dtype, device):
    n = input_ids_shape[1]
    return torch.full((n, n), -1.0, dtype=dtype, device=device).triu(1)
