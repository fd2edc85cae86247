"""Attention as modules: over the tokens themselves, and over a context."""

from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from veriformer.impl.attention_backends import BACKENDS
from veriformer.impl.models.config import ModelConfig
from veriformer.impl.models.linear import Linear
from veriformer.impl.models.sight import Sight
from veriformer.impl.positions.rope import rotate


class KeyValueCache(Protocol):
    """What attention needs of a cache: it takes the new rows and returns all that are to be seen."""

    def update(self, k_new: Tensor, v_new: Tensor) -> tuple[Tensor, Tensor]:
        """Append `[B, G, n_new, d_k]` and return keys and values `[B, G, n_k, d_k]`."""
        ...


class SelfAttention(nn.Module):
    """Multi-head attention of the tokens among themselves, keys and values in `kv_heads` groups. Equations 20–27."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        d, d_k = config.width, config.d_k
        self.config = config
        self.sizes = (config.num_heads * d_k, config.kv_heads * d_k, config.kv_heads * d_k)
        self.qkv = Linear(d, sum(self.sizes), bias=config.bias)
        self.out = Linear(config.num_heads * d_k, d, bias=config.bias)

    def forward(self, x: Tensor, sight: Sight, cache: KeyValueCache | None = None) -> Tensor:
        """Return `[B, n, d]` for tokens `x [B, n, d]`; with a `cache` they also see those before them."""
        H, G = self.config.num_heads, self.config.kv_heads
        qk, v = split_heads(self.qkv(x), self.config.d_k).split_with_sizes((H + G, G), 1)  # [B, H + G or G, n, d_k]
        if sight.rotation is not None:
            qk = rotate(qk, *sight.rotation, self.config.rope_pairing)
        q, k = qk.split_with_sizes((H, G), 1)
        if cache is not None:
            k, v = cache.update(k, v)
        o = attend(q, k, v, sight, self.config, self.training)
        return self.out(o.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class CrossAttention(nn.Module):
    """Attention of the tokens over a context, which knows no order of its own: no bias, no turn, no window."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        d, d_k = config.width, config.d_k
        self.config = config
        self.q = Linear(d, config.num_heads * d_k, bias=config.bias)
        self.kv = Linear(d, 2 * config.kv_heads * d_k, bias=config.bias)
        self.out = Linear(config.num_heads * d_k, d, bias=config.bias)

    def keys(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values of `context [B, n_k, d]`, which stay the same for every new token."""
        k, v = (split_heads(t, self.config.d_k) for t in self.kv(context).chunk(2, -1))
        return k, v

    def forward(self, x: Tensor, keys: tuple[Tensor, Tensor], sight: Sight) -> Tensor:
        """Return `[B, n, d]` for tokens `x [B, n, d]`."""
        q = split_heads(self.q(x), self.config.d_k)
        o = attend(q, *keys, sight, self.config, self.training)
        return self.out(o.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


def split_heads(x: Tensor, d_k: int) -> Tensor:
    """Return `[B, heads, n, d_k]` for `x [B, n, heads · d_k]`."""
    return x.view(*x.shape[:-1], -1, d_k).transpose(1, 2)


def attend(q: Tensor, k: Tensor, v: Tensor, sight: Sight, config: ModelConfig, training: bool) -> Tensor:
    """Return the output of attention `[B, H, n_q, d_k]`, by the backend of the configuration."""
    p = config.attention_dropout if training else 0.0
    if config.attention != "sdpa":
        return _by_backend(config.attention, q, k, v, sight, config, p)
    if torch.compiler.is_compiling() and q.shape[2] == 1 and q.is_cpu and not torch.is_grad_enabled():
        return _one_query(q, k, v, sight.mask, config)
    if config.softcap is not None:
        return _by_backend("reference", q, k, v, sight, config, p)
    scale, mask = config.attention_scale, sight.mask
    B, H, n_q, d_k = q.shape
    G = k.shape[1]
    if G == H:
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, dropout_p=p, is_causal=sight.is_causal, scale=scale
        )
    if n_q > 1:
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, dropout_p=p, is_causal=sight.is_causal, scale=scale, enable_gqa=True
        )
    # The heads of a group become the queries of one head: the cache is read once, and copied never.
    if mask is not None:
        mask = mask if mask.shape[1] == 1 else mask.view(-1, G, H // G, mask.shape[-1])
    o = F.scaled_dot_product_attention(q.view(B, G, H // G, d_k), k, v, attn_mask=mask, dropout_p=p, scale=scale)
    return o.view(B, H, 1, -1)


def _one_query(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, config: ModelConfig) -> Tensor:
    """The formula for a single query, as sums for the compiler to write out: one loop over the keys of each head.

    A kernel for tiles of queries calls a library for every head instead, which takes longer than the numbers do.
    """
    B, H, _, d_k = q.shape
    G = k.shape[1]
    scale = d_k**-0.5 if config.attention_scale is None else config.attention_scale
    z = (q.view(B, G, H // G, 1, d_k) * scale * k[:, :, None]).sum(-1)  # [B, G, H / G, n_k]
    if config.softcap is not None:
        z = config.softcap * (z / config.softcap).tanh()
    if mask is not None:
        mask = mask.view(mask.shape[0], *((G, H // G) if mask.shape[1] == H else (1, 1)), -1)
        z = z.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else z + mask
    return (z.softmax(-1)[..., None] * v[:, :, None]).sum(-2).view(B, H, 1, -1)


def _by_backend(name: str, q: Tensor, k: Tensor, v: Tensor, sight: Sight, config: ModelConfig, p: float) -> Tensor:
    mask = sight.mask
    hides = mask is not None and mask.dtype == torch.bool
    return BACKENDS[name](
        q,
        k,
        v,
        mask=mask if hides else None,
        bias=None if hides else mask,
        is_causal=sight.is_causal,
        window=sight.window,
        scale=config.attention_scale,
        softcap=config.softcap,
        dropout_p=p,
        training=p > 0,
    )
