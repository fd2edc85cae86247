"""Attention mask of one forward pass: built once, shared by every layer."""

from dataclasses import dataclass

import torch
from torch import Tensor

from veriformer.impl.attention_backends.masks import band
from veriformer.impl.models.config import ModelConfig
from veriformer.impl.models.position import RelativeBias, alibi
from veriformer.impl.precision import accumulation_dtype


@dataclass(frozen=True)
class AttentionMask:
    """Mask arguments of `attention` under these names, in the form that its backend computes fastest.

    `mask` is bool (True where visible), `bias` is added to the scores, both `[B or 1, H or 1, n_q, n_k]`; None hides
    nothing. PyTorch's kernels get the plain lower triangle as `is_causal` and all else in one mask or bias; our own
    are told of causality and of the `window`, so that they leave out whole tiles. With a `length [1]`, int64, of which
    only the device knows the number, one query attends to so many keys of a cache: see `attend_to_cache`.
    """

    mask: Tensor | None = None
    bias: Tensor | None = None
    is_causal: bool = False
    window: int | None = None
    length: Tensor | None = None


@dataclass(frozen=True)
class MaskSources:
    """Sources of masking: causality with its window, padding (`attention_mask`), and borders between documents."""

    causal: bool
    attention_mask: Tensor | None = None
    documents: Tensor | None = None


def build_attention_mask(
    config: ModelConfig, x: Tensor, n_k: int, sources: MaskSources, relative_bias: RelativeBias | None = None
) -> AttentionMask:
    """Return what tokens `x [B, n_q, d]` see of `n_k` keys, the last of which are themselves."""
    n_q = x.shape[1]
    bias = _bias(config, x, n_k, relative_bias)
    window = config.window if sources.causal and config.window is not None and config.window < n_k else None
    everything = not sources.causal or (n_q == 1 and window is None)
    apart = config.attention != "sdpa"  # our own backends are told of causality and window, and no mask is made of them
    if sources.attention_mask is None and sources.documents is None and (window is None or apart):
        if everything or apart:
            return AttentionMask(None, bias, not everything, window)
        if bias is None and n_q == n_k:
            return AttentionMask(is_causal=True)
    visible = _visible(sources, n_q, n_k, window, x.device, apart)
    is_causal, window = apart and not everything, window if apart else None
    if bias is None:
        return AttentionMask(visible, None, is_causal, window)
    return AttentionMask(None, bias.masked_fill(~visible, -torch.inf), is_causal, window)


def key_mask(attention_mask: Tensor) -> Tensor:
    """Return `[B, 1, 1, n_k]`, True where a key is real; where no key is real, all of them are shown.

    A softmax over nothing would be NaN, and what a row of padding gives is nobody's result.
    """
    real = attention_mask[:, None, None].bool()
    return real | ~real.any(-1, keepdim=True)


def _visible(sources: MaskSources, n_q: int, n_k: int, window: int | None, device: torch.device, apart: bool) -> Tensor:
    """Return which new token sees which key, bool `[B or 1, 1, n_q or 1, n_k]`; `apart` from causality, or with it.

    Every token sees itself, padding too: so no row is empty, and padding is seen by padding alone.
    """
    attention_mask, documents = sources.attention_mask, sources.documents
    real = None if attention_mask is None else attention_mask[:, attention_mask.shape[1] - n_k :]
    if real is not None and documents is None and not sources.causal:
        return key_mask(real)
    visible = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=device)
    if sources.causal and not apart:
        visible = band((0, n_q), (0, n_k), n_k - n_q, window, device)[None, None]
    if documents is not None:
        visible = visible & (documents[:, None, :, None] == documents[:, None, None, :])
    if real is not None:
        itself = torch.arange(n_q, device=device)[:, None] + n_k - n_q == torch.arange(n_k, device=device)
        visible = visible & (real[:, None, None].bool() | itself)
    return visible


def _bias(config: ModelConfig, x: Tensor, n_k: int, relative_bias: RelativeBias | None) -> Tensor | None:
    if relative_bias is not None:
        bias: Tensor = relative_bias(x.shape[1], n_k)
        return bias.to(accumulation_dtype(x.dtype))
    if config.position == "alibi":
        return alibi(config, x.shape[1], n_k, x.device, accumulation_dtype(x.dtype))
    return None
