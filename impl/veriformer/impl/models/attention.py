"""Attention as modules: over the tokens themselves, and over a context."""

from typing import Protocol

from torch import Tensor, nn

from veriformer.impl.attention_backends import attend
from veriformer.impl.attention_backends.call import Call
from veriformer.impl.attention_backends.flash.triton import attend_to_cache
from veriformer.impl.layers.multi_head_attention import project_heads, split_heads
from veriformer.impl.models.attention_mask import AttentionMask
from veriformer.impl.models.config import ModelConfig
from veriformer.impl.models.linear import Linear
from veriformer.impl.models.position import Rotation
from veriformer.impl.positions.rope import rotate


class KeyValueCache(Protocol):
    """Interface of a cache for attention: it takes the new rows and returns all that are to be seen."""

    def update(self, k_new: Tensor, v_new: Tensor) -> tuple[Tensor, Tensor]:
        """Append `[B, G, n_new, d_k]` and return keys and values `[B, G, n_k, d_k]`."""
        ...


class Heads(nn.Module):
    """Base class of self-attention and cross-attention: the heads, and attention over their queries, keys, values."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.num_heads, self.kv_heads = config.num_heads, config.kv_heads
        self.scale = config.d_k**-0.5 if config.attention_scale is None else config.attention_scale

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, out: Linear) -> Tensor:
        """Return `[B, n, d]` for queries `[B, H, n, d_k]`, keys and values `[B, G, n_k, d_k]`. Equations 20–27."""
        c = self.config
        if mask.length is not None:
            o = attend_to_cache(
                q, k, v, mask.length, mask=mask.mask, window=mask.window, scale=self.scale, softcap=c.softcap
            )
            return project_heads(o, out.weight, out.bias)
        p = c.attention_dropout if self.training else 0.0
        call = Call(q, k, v, mask.mask, mask.bias, mask.is_causal, mask.window, self.scale, c.softcap, p, trusted=True)
        return project_heads(attend(call, c.attention), out.weight, out.bias)


class SelfAttention(Heads):
    """Multi-head attention of the tokens among themselves, keys and values in `kv_heads` groups."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        d_k = config.d_k
        self.sizes = (config.num_heads * d_k, config.kv_heads * d_k, config.kv_heads * d_k)
        self.qkv = Linear(config.d_model, sum(self.sizes), bias=config.bias)
        self.out = Linear(config.num_heads * d_k, config.d_model, bias=config.bias)

    def forward(
        self, x: Tensor, mask: AttentionMask, rotation: Rotation | None = None, cache: KeyValueCache | None = None
    ) -> Tensor:
        """Return `[B, n, d]` for tokens `x [B, n, d]`; with a `cache` they also see those before them."""
        H, G = self.num_heads, self.kv_heads
        # Split before heads and tokens change places: gradients are joined as the product wants them, without a copy
        qkv = self.qkv(x).view(*x.shape[:-1], H + 2 * G, self.config.d_k)  # [B, n, H + 2 G, d_k]
        if rotation is None:
            q, k, v = (part.transpose(1, 2) for part in qkv.split_with_sizes((H, G, G), 2))
        else:
            qk, v = (part.transpose(1, 2) for part in qkv.split_with_sizes((H + G, G), 2))
            q, k = rotate(qk, *rotation, self.config.rope_pairing).split_with_sizes((H, G), 1)
        if cache is not None:
            k, v = cache.update(k, v)
        return self.attend(q, k, v, mask, self.out)


class CrossAttention(Heads):
    """Attention of the tokens over a context, which knows no order of its own: no bias, no turn, no window."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.q = Linear(config.d_model, config.num_heads * config.d_k, bias=config.bias)
        self.kv = Linear(config.d_model, 2 * config.kv_heads * config.d_k, bias=config.bias)
        self.out = Linear(config.num_heads * config.d_k, config.d_model, bias=config.bias)

    def keys(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values of `context [B, n_k, d]`, which stay the same for every new token."""
        k, v = split_heads(self.kv(context), 2 * self.kv_heads).chunk(2, 1)
        return k, v

    def forward(self, x: Tensor, keys: tuple[Tensor, Tensor], mask: AttentionMask) -> Tensor:
        """Return `[B, n, d]` for tokens `x [B, n, d]`."""
        return self.attend(split_heads(self.q(x), self.num_heads), *keys, mask, self.out)
