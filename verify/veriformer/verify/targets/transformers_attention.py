"""The attention of transformers as operations: its masks, its caches, and the functions that its models attend with.

Two targets have them: ``sdpa``, with caches of fixed size and attention over those; ``eager``, with caches that grow.
A cap of the scores is ``eager`` alone, as the library says. Its masks are those that it makes for its models.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from veriformer import impl
from veriformer.verify.targets.argument_validation import AttentionOptions
from veriformer.verify.targets.seeding import seed_from

_masking: Any = import_module("transformers.masking_utils")
_caches: Any = import_module("transformers.cache_utils")
_sdpa: Any = import_module("transformers.integrations.sdpa_attention")
_gemma2: Any = import_module("transformers.models.gemma2.modeling_gemma2")

_FUNCTIONS = {"sdpa": _sdpa.sdpa_attention_forward, "eager": _gemma2.eager_attention_forward}

_NARROW = ["fp32", "bf16", "fp16"]
DTYPES = {"attention": _NARROW, "cached_attention": _NARROW}  # eager: "upcast attention to fp32"
NOT_PROVIDED = {
    "multi_head_attention": "each architecture's module fixes biases, widths and positions that are open here",
    "linear_attention": "its linear layers are gated recurrences",
}


def _who_sees_whom(n_q: int, n_k: int, window: int | None, **options: Any) -> Tensor | None:
    """Return the library's mask [1, 1, n_q, n_k]; None where ``is_causal`` is equivalent, if skipping is allowed."""
    function = _masking.causal_mask_function if window is None else _masking.sliding_window_causal_mask_function(window)
    found: Tensor | None = _masking.sdpa_mask(
        1, n_q, n_k, q_offset=n_k - n_q, mask_function=function, local_size=window, **options
    )
    return found


def _may_skip(scale: float | None) -> bool:
    """Return whether ``is_causal`` may replace the mask: scale > 0 (PyTorch 2.13 gives NaN on a CPU otherwise)."""
    return scale is None or scale > 0


def _causal_mask(n_q: int, n_k: int, window: int | None) -> Tensor | None:
    found = _who_sees_whom(n_q, n_k, window, allow_is_causal_skip=False)
    return None if found is None else found[0, 0]


def _as_numbers(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Return the additive mask of ``eager``: 0 where a key is visible, else the lowest number of the dtype."""
    return None if mask is None else torch.where(mask, torch.zeros((), dtype=dtype), torch.finfo(dtype).min)


def _attend(how: str, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, o: AttentionOptions) -> Tensor:
    """Call the library's function; mask is bool for ``sdpa``, numbers for ``eager``."""
    module = SimpleNamespace(num_key_value_groups=q.shape[1] // k.shape[1], training=o.training, head_dim=q.shape[-1])
    options: dict[str, Any] = {"dropout": float(o.dropout_p) if o.training else 0.0, "scaling": o.scale}
    if how == "sdpa":
        options |= {"is_causal": o.is_causal, "position_bias": o.bias}
    else:
        options |= {"softcap": o.softcap}
    with seed_from(o.generator if o.training and o.dropout_p else None):
        out: Tensor = _FUNCTIONS[how](module, q, k, v, mask, **options)[0]
    return out.transpose(1, 2)


def _attention(how: str, q: Tensor, k: Tensor, v: Tensor, o: AttentionOptions) -> Tensor:
    """Combine the caller's mask with the causal one; ``eager`` takes masks, and the bias, as numbers."""
    how = "eager" if o.softcap is not None else how
    see = o.mask
    if o.is_causal:
        skip = how == "sdpa" and o.mask is None and _may_skip(o.scale)
        order = _who_sees_whom(q.shape[2], k.shape[2], o.window, allow_is_causal_skip=skip)
        see = order if see is None or order is None else see & order
    bias = None if o.bias is None else o.bias.to(q.dtype)
    if how == "sdpa":
        return _attend(how, q, k, v, see, _with_bias(o, bias))
    hidden = _as_numbers(see, q.dtype)
    return _attend(how, q, k, v, hidden if bias is None else bias if hidden is None else hidden + bias, o)


def _with_bias(o: AttentionOptions, bias: Tensor | None) -> AttentionOptions:
    return AttentionOptions(**{**vars(o), "bias": bias})


@dataclass
class Cache:
    """A cache of one layer, as the contract uses it; our own stands guard, for the library takes any number of rows."""

    inner: Any
    guard: Any
    window: int | None

    @property
    def length(self) -> int:
        """Tokens appended since the last reset."""
        return int(self.inner.get_seq_length())

    def update(self, k_new: Tensor, v_new: Tensor) -> tuple[Tensor, Tensor]:
        """Append and return the library's keys and values, without the rows of a fixed buffer that were never
        written."""
        keys, values = self.append(k_new, v_new)
        return keys[:, :, : self.length], values[:, :, : self.length]

    def append(self, k_new: Tensor, v_new: Tensor) -> tuple[Tensor, Tensor]:
        """Append and return the library's keys and values."""
        with torch.no_grad():
            self.guard.update(k_new, v_new)
        found: tuple[Tensor, Tensor] = self.inner.update(k_new, v_new, 0)
        return found

    def reorder(self, index: Tensor) -> None:
        """Let element b continue from element index[b]."""
        self.guard.reorder(index)
        self.inner.reorder_cache(index)

    def reset(self) -> None:
        """Reset both caches."""
        self.guard.reset()
        self.inner.reset()


def _kv_cache(
    how: str,
    batch: int,
    num_kv_heads: int,
    max_length: int,
    head_dim: int,
    *,
    dtype: torch.dtype,
    quantization: str | None,
    window: int | None,
) -> Cache:
    """Make a cache of the library; refuse quantization: optimum-quanto and hqq have no scale per row."""
    if quantization is not None:
        raise NotImplementedError("quantization: the library has two and four bits, or groups of entries")
    guard = impl.kv_cache(batch, num_kv_heads, max_length, head_dim, dtype=dtype)
    kinds = {
        ("sdpa", False): partial(_caches.StaticLayer, int(max_length)),
        ("sdpa", True): partial(_caches.StaticSlidingWindowLayer, int(max_length)),
        ("eager", False): _caches.DynamicLayer,
        ("eager", True): _caches.DynamicSlidingWindowLayer,
    }
    layer = kinds[how, window is not None](**({} if window is None else {"sliding_window": int(window)}))
    return Cache(_caches.Cache(layers=[layer]), guard, window)


def _cached_attention(
    q_new: Tensor, k_new: Tensor, v_new: Tensor, cache: Cache, scale: float | None, softcap: float | None
) -> Tensor:
    """Attend as the library's models do: the mask is made for the keys that the cache will return."""
    how = "sdpa" if softcap is None else "eager"
    config = SimpleNamespace(_attn_implementation=how, sliding_window=cache.window)
    make = _masking.create_causal_mask if cache.window is None else _masking.create_sliding_window_causal_mask
    mask = make(config, q_new[:, 0], None, cache.inner, allow_is_causal_skip=_may_skip(scale))
    k, v = cache.append(k_new, v_new)
    return _attend(how, q_new, k, v, mask, AttentionOptions(is_causal=True, scale=scale, softcap=softcap))


COMMON: dict[str, Any] = {"causal_mask": _causal_mask}
SDPA: dict[str, Any] = {
    "attention": partial(_attention, "sdpa"),
    "kv_cache": partial(_kv_cache, "sdpa"),
    "cached_attention": _cached_attention,
}
EAGER: dict[str, Any] = {"attention": partial(_attention, "eager"), "kv_cache": partial(_kv_cache, "eager")}
"""By the contract's names."""
