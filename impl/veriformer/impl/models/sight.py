"""What the queries of one forward pass see: built once, shared by every layer."""

from dataclasses import dataclass

import torch
from torch import Tensor

from veriformer.impl.attention_backends.masks import band
from veriformer.impl.models.config import ModelConfig
from veriformer.impl.models.position import RelativeBias, Rotation, alibi


@dataclass(frozen=True)
class Sight:
    """The mask of attention in the form that kernels take, and the turn of RoPE.

    `mask` is bool (True where visible) or is added to the scores, `[B or 1, H or 1, n_q, n_k]`; None hides nothing.
    `is_causal` stands for the plain lower triangle, so that no kernel has to read a mask. To PyTorch's kernels it says
    all or nothing; to our backends it says what else is hidden, with the `window`, so that they leave out whole tiles.
    """

    mask: Tensor | None = None
    is_causal: bool = False
    rotation: Rotation | None = None
    window: int | None = None


@dataclass(frozen=True)
class Hidden:
    """What may hide keys: causality with its window, padding (`attention_mask`), and borders between documents."""

    causal: bool
    attention_mask: Tensor | None = None
    documents: Tensor | None = None


def sight(
    config: ModelConfig,
    x: Tensor,
    n_k: int,
    hidden: Hidden,
    *,
    relative_bias: RelativeBias | None = None,
    rotation: Rotation | None = None,
) -> Sight:
    """Return what tokens `x [B, n_q, d]` see of `n_k` keys, the last of which are themselves."""
    n_q = x.shape[1]
    bias = _bias(config, x, n_k, relative_bias)
    window = config.window if hidden.causal and config.window is not None and config.window < n_k else None
    everything = not hidden.causal or (n_q == 1 and window is None)
    apart = config.attention != "sdpa"  # our own backends are told of causality and window, and no mask is made of them
    if hidden.attention_mask is None and hidden.documents is None and (window is None or apart):
        if everything or apart:
            return Sight(bias, not everything, rotation, window)
        if bias is None and n_q == n_k:
            return Sight(None, True, rotation)
    visible = _visible(hidden, n_q, n_k, window, x.device, apart)
    mask = visible if bias is None else bias.masked_fill(~visible, -torch.inf)
    return Sight(mask, apart and not everything, rotation, window if apart else None)


def key_mask(attention_mask: Tensor) -> Tensor:
    """Return `[B, 1, 1, n_k]`, True where a key is real; where no key is real, all of them are shown.

    A softmax over nothing would be NaN, and what a row of padding gives is nobody's result.
    """
    real = attention_mask[:, None, None].bool()
    return real | ~real.any(-1, keepdim=True)


def _visible(hidden: Hidden, n_q: int, n_k: int, window: int | None, device: torch.device, apart: bool) -> Tensor:
    """Return which new token sees which key, bool `[B or 1, 1, n_q or 1, n_k]`; `apart` from causality, or with it.

    Every token sees itself, padding too: so no row is empty, and padding is seen by padding alone.
    """
    attention_mask, documents = hidden.attention_mask, hidden.documents
    real = None if attention_mask is None else attention_mask[:, attention_mask.shape[1] - n_k :]
    if real is not None and documents is None and not hidden.causal:
        return key_mask(real)
    visible = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=device)
    if hidden.causal and not apart:
        visible = band((0, n_q), (0, n_k), n_k - n_q, window, device)[None, None]
    if documents is not None:
        visible = visible & (documents[:, None, :, None] == documents[:, None, None, :])
    if real is not None:
        itself = torch.arange(n_q, device=device)[:, None] + n_k - n_q == torch.arange(n_k, device=device)
        visible = visible & (real[:, None, None].bool() | itself)
    return visible


def _bias(config: ModelConfig, x: Tensor, n_k: int, relative_bias: RelativeBias | None) -> Tensor | None:
    if relative_bias is not None:
        return relative_bias(x.shape[1], n_k)  # type: ignore[no-any-return]
    if config.position == "alibi":
        return alibi(config, x.shape[1], n_k, x.device, x.dtype)
    return None
