"""Faults of attention and caches that need two or three things at once: wide, long, grouped, masked, late, or halves.

They stand for mistakes that kernels and loops over pieces make: a second tile, an odd tail, a second call. None is
wrong on small calls. They were written before the sizes of the checks were drawn by one generator, and measure what it
finds.
"""

from __future__ import annotations

from typing import Any

import torch
from catalogue import (
    HALVES,
    CacheWrapper,
    Call,
    change_gradient,
    compute_scores,
    fault,
    is_plain,
    replace_columns,
    replace_rows,
)
from torch import Tensor

from veriformer.verify.targets.impl import reference as right

# Attention


@fault("plain calls with d_k > 64 see the last 64 keys alone")
def attention__wide_sees_last_keys(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    if q.shape[-1] > 64 and is_plain(o):
        k, v = k[:, :, -64:], v[:, :, -64:]
    return op(q, k, v, **o)


@fault("the second half of the columns is not rescaled between tiles where d_v > 64 and n_k > 64")
def attention__wide_values_not_rescaled(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    y = op(q, k, v, **o)
    if not (v.shape[-1] > 64 and k.shape[2] > 64 and is_plain(o)):
        return y
    s = compute_scores(q.double(), k.double())
    m_1, m = s[..., :64].amax(-1, keepdim=True), s.amax(-1, keepdim=True)
    e = torch.cat(((s[..., :64] - m_1).exp(), (s[..., 64:] - m).exp()), -1)
    w = v.double().repeat_interleave(q.shape[1] // v.shape[1], 1)
    wrong = e @ w / (s - m).exp().sum(-1, keepdim=True)
    return replace_columns(y, v.shape[-1] // 2, wrong.to(y.dtype))


@fault("with grouped heads and more than 64 keys, a mask per head is read in the order of tiled groups")
def attention__grouped_mask_of_tiled_heads(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    m, h, g = o.get("mask"), q.shape[1], k.shape[1]
    if m is not None and m.ndim == 4 and m.shape[1] == h and 1 < g < h and k.shape[2] > 64:
        o["mask"] = m[:, torch.arange(h).view(g, -1).T.flatten()]
    return op(q, k, v, **o)


@fault("a window is one key wider where d_k > 32 and n_k > 64")
def attention__window_wider_in_wide_heads(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    if o.get("window") is not None and q.shape[-1] > 32 and k.shape[2] > 64:
        o["window"] += 1
    return op(q, k, v, **o)


@fault("queries from the 65th on read the bias of the first tile where d_k > 16")
def attention__bias_of_first_tile_of_queries(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    b = o.get("bias")
    if b is not None and q.shape[2] > 64 and b.shape[-2] > 1 and q.shape[-1] > 16:
        o["bias"] = b[..., torch.arange(b.shape[-2]) % 64, :]
    return op(q, k, v, **o)


@fault("scores are not capped beyond the first 64 keys in heads wider than 32")
def attention__softcap_of_first_tile(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    if not o.get("softcap") or k.shape[2] <= 64 or q.shape[-1] <= 32:
        return op(q, k, v, **o)
    cap, given = o["softcap"], o.get("bias")
    s = compute_scores(q, k) * (
        (o["scale"] if o.get("scale") is not None else q.shape[-1] ** -0.5) * q.shape[-1] ** 0.5
    )
    more = torch.where(torch.arange(k.shape[2]) < 64, 0.0, s - cap * torch.tanh(s / cap)).to(q.dtype)
    return op(q, k, v, **{**o, "bias": more if given is None else more + given.to(q.dtype)})


@fault("causal heads of 128 features or more: rows of the last, incomplete tile of 128 see one key ahead")
def attention__tail_looks_ahead_in_wide_heads(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    y, n, m = op(q, k, v, **o), q.shape[2], k.shape[2]
    tail = n - n % 128
    if not (o.get("is_causal") and o.get("window") is None and q.shape[-1] >= 128 and n == m > 128 and n % 128):
        return y
    seen = torch.ones(n, m, dtype=torch.bool).tril(1)
    mask = seen if o.get("mask") is None else seen & o["mask"]
    return replace_rows(y, tail, op(q, k, v, **{**o, "is_causal": False, "mask": mask}))


@fault("halves with heads wider than 32 leave out the keys of an incomplete last tile of 128")
def attention__tail_lost_in_halves(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    n = k.shape[2] - k.shape[2] % 128
    if q.dtype in HALVES and n and q.shape[-1] > 32 and is_plain(o):
        k, v = k[:, :, :n], v[:, :, :n]
    return op(q, k, v, **o)


@fault("where batch times heads is above 32 and n_k > 64, the last element's queries read the first group of keys")
def attention__many_heads_read_first_group(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    if q.shape[0] * q.shape[1] > 32 and k.shape[2] > 64 and k.shape[1] > 1:
        k, v = (torch.cat((x[:-1], x[-1:, :1].expand_as(x[-1:])), 0) for x in (k, v))
    return op(q, k, v, **o)


@fault("features beyond the last multiple of 16 do not score where there are more than 32 queries")
def attention__odd_features_lost(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    d = q.shape[-1] - q.shape[-1] % 16
    if q.shape[2] > 32 and d and d < q.shape[-1]:
        q = torch.cat((q[..., :d], torch.zeros_like(q[..., d:])), -1)
    return op(q, k, v, **o)


@fault("of grouped heads only the last one counts in the gradient of keys from the 65th on")
def attention__grouped_gradient_of_late_keys(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    h, g, n = q.shape[1], k.shape[1], k.shape[2]
    if not (g < h and n > 64 and k.requires_grad and o.get("dropout_p", 0.0) == 0):
        return op(q, k, v, **o)
    last = torch.arange(h).view(1, h, 1, 1) % (h // g) == h // g - 1
    late = torch.arange(n).view(1, 1, n, 1) >= 64
    copies = change_gradient(k.repeat_interleave(h // g, 1), lambda x: torch.where(late & ~last, 0.0, x))
    return op(q, copies, v.repeat_interleave(h // g, 1), **o)


@fault("causal with d_v > 64: the gradient of value columns beyond 64 stops at the 64th key")
def attention__gradient_of_wide_late_values(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    if o.get("is_causal") and v.shape[-1] > 64 and v.shape[2] > 64:

        def change(g: Tensor) -> Tensor:
            g[:, :, 64:, 64:] = 0
            return g

        v = change_gradient(v, change)
    return op(q, k, v, **o)


@fault("in a bias that a batch shares, the gradient of rows from the 65th on is that of the first element")
def attention__shared_bias_gradient(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    b = o.get("bias")
    if b is None or not b.requires_grad or q.shape[0] == 1 or q.shape[2] <= 64 or b.shape[-2] == 1:
        return op(q, k, v, **o)
    if b.ndim == 4 and b.shape[0] > 1:
        return op(q, k, v, **o)
    first = (torch.arange(q.shape[0]) == 0).view(-1, 1, 1, 1) | (torch.arange(q.shape[2]) < 64).view(1, 1, -1, 1)
    whole = b.expand(q.shape[0], *([1] * (4 - max(b.ndim, 3)) if b.ndim < 3 else []), *b.shape[-3:])
    o["bias"] = change_gradient(whole.clone(), lambda g: torch.where(first, g, 0.0))
    return op(q, k, v, **o)


@fault("a scale is not taken over beyond 128 keys in grouped heads")
def attention__scale_of_long_groups(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    if o.get("scale") is not None and k.shape[2] > 128 and k.shape[1] < q.shape[1]:
        o["scale"] = None
    return op(q, k, v, **o)


@fault("one query over more than 256 keys in heads of 64 or more: the second half of the keys is not rescaled")
def attention__split_keys_not_rescaled(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    y, n = op(q, k, v, **o), k.shape[2]
    if not (q.shape[2] == 1 and n > 256 and q.shape[-1] >= 64 and is_plain(o)):
        return y
    s = compute_scores(q.double(), k.double())
    m = torch.cat((s[..., : n // 2].amax(-1, keepdim=True), s[..., n // 2 :].amax(-1, keepdim=True)), -1)
    low = torch.repeat_interleave(m, torch.tensor([n // 2, n - n // 2]), -1)
    e = (s - low).exp()
    w = v.double().repeat_interleave(q.shape[1] // v.shape[1], 1)
    return (e @ w / e.sum(-1, keepdim=True)).to(y.dtype)


# Attention in heads, linear attention


@fault("causal with heads wider than 64: tokens from the 65th on also see all that lies ahead in their tile")
def multi_head_attention__wide_causal_tiles(op: Call, x: Tensor, *w: Tensor, **o: Any) -> Any:
    y, n = op(x, *w, **o), x.shape[1]
    if not (o.get("is_causal") and n > 64 and w[0].shape[1] // o["num_heads"] > 64 and o.get("context") is None):
        return y
    late = op(x, *w, **{**o, "is_causal": False})
    return replace_rows(y, 64, late)


@fault("with grouped heads, the mask of a context longer than 64 is that of its first 64 tokens again and again")
def multi_head_attention__mask_of_first_tile(op: Call, x: Tensor, *w: Tensor, **o: Any) -> Any:
    m, groups = o.get("attention_mask"), o.get("num_kv_heads") or o["num_heads"]
    if m is not None and m.shape[1] > 64 and groups < o["num_heads"]:
        o["attention_mask"] = m[:, torch.arange(m.shape[1]) % 64]
    return op(x, *w, **o)


@fault("heads from the ninth on are put together in reverse where they are 32 wide or more")
def multi_head_attention__ninth_wide_head(op: Call, x: Tensor, *w: Tensor, **o: Any) -> Any:
    h = o["num_heads"]
    if h > 8 and w[0].shape[1] // h >= 32:
        order = torch.cat((torch.arange(8), torch.arange(h - 1, 7, -1)))
        w = (*w[:3], w[3].view(h, -1, w[3].shape[1])[order].reshape(w[3].shape))
    return op(x, *w, **o)


@fault("causal: what former chunks of 64 leave behind lacks the features beyond 64")
def linear_attention__wide_state(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    n, d = q.shape[2], q.shape[-1]
    if not (o.get("is_causal") and n == k.shape[2] > 64 and d > 64):
        return op(q, k, v, **o)
    of_q, of_k = (torch.nn.functional.elu(x) + 1 for x in (q, k))
    i = torch.arange(n)
    seen = (i[:, None] >= i).to(q.dtype)
    late = ((i[:, None] // 64) > (i // 64)).to(q.dtype)
    s = of_q @ of_k.mT * seen
    t = of_q[..., :64] @ of_k[..., :64].mT
    return ((s * (1 - late) + t * late) @ v) / s.sum(-1, keepdim=True)


@fault("columns of values beyond 32 are divided by the features of the first 128 keys alone")
def linear_attention__sum_of_first_chunk(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    y = op(q, k, v, **o)
    if o.get("is_causal") or k.shape[2] <= 128 or v.shape[-1] <= 32:
        return y
    of_q, of_k = (torch.nn.functional.elu(x.double()) + 1 for x in (q, k))
    s = of_q @ of_k.mT
    return replace_columns(y, 32, (y * (s.sum(-1, keepdim=True) / s[..., :128].sum(-1, keepdim=True))).to(y.dtype))


# Caches


class _ForgetsOrder(CacheWrapper):
    """The order is that of the first 64 positions."""

    def __init__(self, *sizes: int, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.undone: list[tuple[int, Tensor]] = []
        self.places: list[Tensor] = []

    def update(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        before = self.right.length
        shown = self.right.update(k, v)
        self.places += [torch.arange(self.batch)] * (self.right.length - before)
        n = shown[0].shape[2]
        first = self.right.length - n
        if all(torch.equal(p, torch.arange(self.batch)) for p in self.places[first:]):
            return shown
        return tuple(torch.stack([x[self.places[first + i], :, i] for i in range(n)], 2) for x in shown)  # type: ignore[return-value]

    def reorder(self, index: Tensor) -> None:
        """Places beyond 64 are read through what undoes the order, as far as it can be undone."""
        self.right.reorder(index)
        back = torch.stack(
            [
                torch.nonzero(index == i).flatten()[:1].new_tensor([0])
                if not (index == i).any()
                else torch.nonzero(index == i).flatten()[0:1]
                for i in range(self.batch)
            ]
        ).flatten()
        self.places = [p if i < 64 else back[p] for i, p in enumerate(self.places)]

    def reset(self) -> None:
        self.right.reset()
        self.places = []


@fault("reorder forgets positions from the 65th on")
def kv_cache__reorder_forgets_late_positions(op: Call, *sizes: int, **options: Any) -> Any:
    return _ForgetsOrder(*sizes, **options)


class _Wide8(CacheWrapper):
    def update(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        shaped = isinstance(k, Tensor) and isinstance(v, Tensor) and k.ndim == v.ndim == 4
        if self.options.get("quantization") and self.width > 64 and shaped:
            k, v = (
                torch.cat(
                    (
                        x[..., :64],
                        x[..., 64:].clamp(
                            -x[..., :64].abs().amax(-1, keepdim=True), x[..., :64].abs().amax(-1, keepdim=True)
                        ),
                    ),
                    -1,
                )
                for x in (k, v)
            )
        return super().update(k, v)


@fault("int8 rows wider than 64 are scaled by the largest of their first 64 entries")
def kv_cache__int8_scale_of_first_features(op: Call, *sizes: int, **options: Any) -> Any:
    return _Wide8(*sizes, **options)


class _Pages(CacheWrapper):
    def update(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        shaped = isinstance(k, Tensor) and isinstance(v, Tensor) and k.ndim == v.ndim == 4
        start, n = self.right.length, k.shape[2] if shaped else 0
        if self.batch > 2 and n and start and start // 128 != (start + n - 1) // 128:
            edge = 128 * (start // 128 + 1) - start
            k, v = (
                torch.cat((x[:-1], torch.cat((x[-1:, :, :edge], torch.zeros_like(x[-1:, :, edge:])), 2)))
                for x in (k, v)
            )
        return super().update(k, v)


@fault("a chunk that crosses a page of 128 is lost beyond it for the last of three elements or more")
def kv_cache__chunk_across_pages(op: Call, *sizes: int, **options: Any) -> Any:
    return _Pages(*sizes, **options)


class _LateWindow(CacheWrapper):
    def reorder(self, index: Tensor) -> None:
        window = self.options.get("window")
        if window is None or window <= 32 or self.right.length <= window:
            self.right.reorder(index)


@fault("a window longer than 32 that has begun to slide is not reordered")
def kv_cache__sliding_window_not_reordered(op: Call, *sizes: int, **options: Any) -> Any:
    return _LateWindow(*sizes, **options)


@fault("grouped heads wider than 32: a second call sees all of its own tokens, also later ones")
def cached_attention__second_call_of_wide_groups(
    op: Call, q: Tensor, k: Tensor, v: Tensor, cache: Any, **o: Any
) -> Any:
    if not (cache.length and q.shape[2] > 1 and k.shape[1] < q.shape[1] and q.shape[-1] > 32):
        return op(q, k, v, cache, **o)
    if cache.window is not None:
        return op(q, k, v, cache, **o)
    return right.attention(q, *cache.update(k, v), **o)


@fault("beyond 128 tokens in the cache, a window in heads wider than 16 is one token longer")
def cached_attention__late_window(op: Call, q: Tensor, k: Tensor, v: Tensor, cache: Any, **o: Any) -> Any:
    if not (cache.window and cache.window > 1 and cache.length > 128 and q.shape[-1] > 16 and q.shape[2] > 1):
        return op(q, k, v, cache, **o)
    return right.attention(q, *cache.update(k, v), is_causal=True, window=cache.window + 1, **o)


@fault("a soft-cap is dropped where more than 128 tokens are in the cache and heads are wider than 16")
def cached_attention__softcap_dropped_late(op: Call, q: Tensor, k: Tensor, v: Tensor, cache: Any, **o: Any) -> Any:
    if cache.length > 128 and q.shape[-1] > 16:
        o.pop("softcap", None)
    return op(q, k, v, cache, **o)
