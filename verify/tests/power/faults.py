"""Faults that need two or three things at once: wide and long, grouped and masked, many and late, half and large.

Each stands for a mistake that kernels and loops over pieces make: a second tile, an odd tail, a second call, a list
longer than what was tried. None is wrong on small calls. They were written before the sizes of the checks were drawn
by one generator, and measure what it finds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.mutants.combinators import Fault, instead, with_gradient
from veriformer.verify.targets.impl import reference as right

Call = Callable[..., Any]
HALVES = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class NamedFault:
    """Wrong operation; wrong: its fault, in one line."""

    name: str
    operation: str
    wrong: str
    fault: Fault

    def target(self) -> SimpleNamespace:
        """All of the right implementation, but for this one operation."""
        broken = self.fault(getattr(right, self.operation))
        return SimpleNamespace(**{**vars(right), self.operation: broken, "__name__": f"power:{self.name}"})


FAULTS: dict[str, NamedFault] = {}


def fault(wrong: str) -> Callable[[Call], Call]:
    """Register a function named operation__what that gets the right operation first."""

    def register(function: Call) -> Call:
        operation = function.__name__.partition("__")[0]
        FAULTS[function.__name__] = NamedFault(function.__name__, operation, wrong, _where_it_can(instead(function)))
        return function

    return register


def _where_it_can(fault: Fault) -> Fault:
    """Apply a fault where it can be: refuse as before, and compute rightly where the fault raises."""

    def cautious(whole: Call) -> Call:
        wrong = fault(whole)

        @functools.wraps(whole)
        def broken(*args: Any, **options: Any) -> Any:
            try:
                return wrong(*args, **options)
            except Exception:
                return whole(*args, **options)

        return broken

    return cautious


def _plain(o: dict[str, Any]) -> bool:
    return all(x is None or x is False or x == 0.0 for x in o.values())


def _back(x: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    return with_gradient(x, lambda g: change(g.clone())) if x.requires_grad else x


def _scores(q: Tensor, k: Tensor) -> Tensor:
    k = k.repeat_interleave(q.shape[1] // max(k.shape[1], 1), 1)
    return q @ k.mT / math.sqrt(q.shape[-1])


def _rows(x: Tensor, start: int, other: Tensor) -> Tensor:
    """x with its last but one axis from start on taken from other."""
    return torch.cat((x[..., :start, :], other[..., start:, :]), -2)


def _columns(x: Tensor, start: int, other: Tensor) -> Tensor:
    return torch.cat((x[..., :start], other[..., start:]), -1)


# Attention


@fault("plain calls with d_k > 64 see the last 64 keys alone")
def attention__wide_sees_last_keys(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    if q.shape[-1] > 64 and _plain(o):
        k, v = k[:, :, -64:], v[:, :, -64:]
    return op(q, k, v, **o)


@fault("the second half of the columns is not rescaled between tiles where d_v > 64 and n_k > 64")
def attention__wide_values_not_rescaled(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    y = op(q, k, v, **o)
    if not (v.shape[-1] > 64 and k.shape[2] > 64 and _plain(o)):
        return y
    s = _scores(q.double(), k.double())
    m_1, m = s[..., :64].amax(-1, keepdim=True), s.amax(-1, keepdim=True)
    e = torch.cat(((s[..., :64] - m_1).exp(), (s[..., 64:] - m).exp()), -1)
    w = v.double().repeat_interleave(q.shape[1] // v.shape[1], 1)
    wrong = e @ w / (s - m).exp().sum(-1, keepdim=True)
    return _columns(y, v.shape[-1] // 2, wrong.to(y.dtype))


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
    s = _scores(q, k) * ((o["scale"] if o.get("scale") is not None else q.shape[-1] ** -0.5) * q.shape[-1] ** 0.5)
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
    return _rows(y, tail, op(q, k, v, **{**o, "is_causal": False, "mask": mask}))


@fault("halves with heads wider than 32 leave out the keys of an incomplete last tile of 128")
def attention__tail_lost_in_halves(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    n = k.shape[2] - k.shape[2] % 128
    if q.dtype in HALVES and n and q.shape[-1] > 32 and _plain(o):
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
    copies = _back(k.repeat_interleave(h // g, 1), lambda x: torch.where(late & ~last, 0.0, x))
    return op(q, copies, v.repeat_interleave(h // g, 1), **o)


@fault("causal with d_v > 64: the gradient of value columns beyond 64 stops at the 64th key")
def attention__gradient_of_wide_late_values(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    if o.get("is_causal") and v.shape[-1] > 64 and v.shape[2] > 64:

        def change(g: Tensor) -> Tensor:
            g[:, :, 64:, 64:] = 0
            return g

        v = _back(v, change)
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
    o["bias"] = _back(whole.clone(), lambda g: torch.where(first, g, 0.0))
    return op(q, k, v, **o)


@fault("a scale is not taken over beyond 128 keys in grouped heads")
def attention__scale_of_long_groups(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    if o.get("scale") is not None and k.shape[2] > 128 and k.shape[1] < q.shape[1]:
        o["scale"] = None
    return op(q, k, v, **o)


@fault("one query over more than 256 keys in heads of 64 or more: the second half of the keys is not rescaled")
def attention__split_keys_not_rescaled(op: Call, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Any:
    y, n = op(q, k, v, **o), k.shape[2]
    if not (q.shape[2] == 1 and n > 256 and q.shape[-1] >= 64 and _plain(o)):
        return y
    s = _scores(q.double(), k.double())
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
    return _rows(y, 64, late)


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
    return _columns(y, 32, (y * (s.sum(-1, keepdim=True) / s[..., :128].sum(-1, keepdim=True))).to(y.dtype))


# Caches


class _Around:
    """A right cache, some calls of which are changed."""

    def __init__(self, *sizes: int, **options: Any) -> None:
        self.right = right.kv_cache(*sizes, **options)
        self.batch, self.heads, self.room, self.width = sizes
        self.options = options
        self.rows: list[Tensor] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.right, name)

    def update(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        shown: tuple[Tensor, Tensor] = self.right.update(k, v)
        return shown

    def reorder(self, index: Tensor) -> None:
        self.right.reorder(index)

    def reset(self) -> None:
        self.right.reset()


class _ForgetsOrder(_Around):
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


class _Wide8(_Around):
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


class _Pages(_Around):
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


class _LateWindow(_Around):
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


# Scores and losses


@fault("the entries of an incomplete last tile of 128 do not count in rows beyond the 128th")
def softmax__late_rows_lose_tail(op: Call, z: Tensor, dim: int = -1) -> Any:
    y = op(z, dim)
    n = z.shape[-1] - z.shape[-1] % 128 if z.ndim else 0
    rows = z.numel() // max(1, z.shape[-1]) if z.ndim else 0
    if dim not in (-1, z.ndim - 1) or not n or n == z.shape[-1] or rows <= 128:
        return y
    flat = z.reshape(-1, z.shape[-1])
    head = op(flat[128:, :n])
    tail = (flat[128:, n:] - flat[128:, :n].logsumexp(-1, keepdim=True)).exp()
    return torch.cat((y.reshape(flat.shape)[:128], torch.cat((head, tail), -1))).view(z.shape)


@fault(
    "along an axis that is not the last, longer than 64 and with more than 64 beside it, the maximum is of 64 entries"
)
def softmax__first_axis_in_tiles(op: Call, z: Tensor, dim: int = -1) -> Any:
    if z.ndim < 2 or dim % z.ndim == z.ndim - 1 or z.shape[dim] <= 64 or z.shape[-1] <= 64:
        return op(z, dim)
    e = (z - z.narrow(dim, 0, 64).amax(dim, keepdim=True)).clamp(max=2.0).exp()
    return e / e.sum(dim, keepdim=True)


@fault("an axis longer than 1024 in more than 16 rows: the second half is not rescaled")
def logsumexp__long_rows_not_rescaled(op: Call, z: Tensor, dim: int = -1) -> Any:
    n = z.shape[dim] if z.ndim else 0
    if n <= 1024 or z.numel() // n <= 16:
        return op(z, dim)
    a, b = z.narrow(dim, 0, n // 2), z.narrow(dim, n // 2, n - n // 2)
    m = a.amax(dim, keepdim=True)
    s = (a - m).exp().sum(dim) + (b - b.amax(dim, keepdim=True)).exp().sum(dim)
    return m.squeeze(dim) + s.log()


@fault("over more than 1024 classes the mean counts the ignored targets, too")
def cross_entropy__large_vocabulary_counts_ignored(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    if z.shape[-1] > 1024 and not t.is_floating_point() and o.get("reduction", "mean") == "mean":
        return op(z, t, **{**o, "reduction": "sum"}) / max(1, t.numel())
    return op(z, t, **o)


@fault("smoothing is spread over the first 512 classes of more")
def cross_entropy__smoothing_of_first_classes(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    a = o.get("label_smoothing", 0.0)
    if not a or z.shape[-1] <= 512 or t.is_floating_point() or o.get("reduction", "mean") != "none":
        return op(z, t, **o)
    plain = op(z, t, **{**o, "label_smoothing": 0.0})
    flat = (z.logsumexp(-1) - z[..., :512].mean(-1)) * (t != o.get("ignore_index", -100))
    return (1 - a) * plain + a * flat.to(z.dtype)


@fault("without a reduction, ignored rows from the 129th on are not 0")
def cross_entropy__late_ignored_rows(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    y = op(z, t, **o)
    if o.get("reduction") != "none" or t.is_floating_point() or t.numel() <= 128:
        return y
    late = (torch.arange(t.numel()).view(t.shape) >= 128) & (t == o.get("ignore_index", -100))
    return torch.where(late, z.logsumexp(-1).to(y.dtype), y)


@fault("of probabilities over more than 128 classes an incomplete last tile of 128 is left out")
def cross_entropy__tail_of_probabilities(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    n = z.shape[-1] - z.shape[-1] % 128 if z.ndim else 0
    if t.is_floating_point() and n:
        t = torch.cat((t[..., :n], torch.zeros_like(t[..., n:])), -1)
    return op(z, t, **o)


@fault("beyond 128 tokens with some ignored, it is of the mean of the chunks' means")
def perplexity__mean_of_chunk_means(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    flat, ignored = t.flatten(), o.get("ignore_index", -100)
    if t.numel() <= 128 or not (flat == ignored).any():
        return op(z, t, **o)
    rows = zip(z.reshape(-1, z.shape[-1]).split(128), flat.split(128), strict=True)
    means = [right.cross_entropy(a, b, **o) for a, b in rows if (b != ignored).any()]
    return torch.stack(means).mean().exp()


@fault("positions that are not masked get a gradient where there are more than 64 tokens and 256 classes")
def masked_lm_loss__gradient_of_visible_positions(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    if t.numel() > 64 and z.shape[-1] > 256:
        shown = (t == o.get("ignore_index", -100))[..., None]
        z = _back(z, lambda g: torch.where(shown, g.abs().amax() / z.shape[-1], g))
    return op(z, t, **o)


@fault("labels beyond 32767 are read as 16 bits")
def masked_lm_loss__labels_of_sixteen_bits(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    return op(z, torch.where(t > 32767, t - 32768, t), **o)


@fault("more than 32 bins and 256 rows: the bins from the 33rd on are one")
def expected_calibration_error__late_bins(op: Call, p: Tensor, t: Tensor, *, num_bins: int = 15) -> Any:
    if num_bins <= 32 or t.numel() <= 256:
        return op(p, t, num_bins=num_bins)
    top, guess = p.double().reshape(-1, p.shape[-1]).max(-1)
    gap = (guess == t.flatten()).double() - top
    place = ((top * num_bins).ceil() - 1).clamp(0, 32).long()
    return (torch.zeros(33, dtype=torch.float64).index_add(0, place, gap).abs().sum() / t.numel()).to(p.dtype)


@fault("classes from the 257th on get no share in rows beyond the 64th")
def smooth_labels__late_rows_and_classes(op: Call, t: Tensor, num_classes: int, alpha: float) -> Any:
    y = op(t, num_classes, alpha).clone()
    flat = y.view(-1, num_classes)
    if num_classes > 256 and flat.shape[0] > 64:
        flat[64:, 256:] -= alpha / num_classes
    return y


# Layers


@fault("a bias without a weight stops at 1024 features")
def layer_norm__wide_bias_alone(op: Call, x: Tensor, weight: Any = None, bias: Any = None, **o: Any) -> Any:
    if weight is None and bias is not None and x.shape[-1] > 1024:
        bias = torch.cat((bias[:1024], torch.zeros_like(bias[1024:])))
    return op(x, weight, bias, **o)


@fault("the weight's gradient leaves out an incomplete last tile of 128 rows where they are wider than 64")
def layer_norm__tail_rows_of_weight_gradient(
    op: Call, x: Tensor, weight: Any = None, bias: Any = None, **o: Any
) -> Any:
    rows = x.numel() // max(1, x.shape[-1])
    n = rows - rows % 128
    if weight is None or not n or n == rows or x.shape[-1] <= 64:
        return op(x, weight, bias, **o)
    flat = x.reshape(rows, -1)
    y = torch.cat((op(flat[:n], weight, bias, **o), op(flat[n:], weight.detach(), bias, **o)))
    return y.view(x.shape)


@fault("halves wider than 512 are divided by the root mean square of their first 512 entries")
def rms_norm__wide_halves(op: Call, x: Tensor, weight: Any = None, **o: Any) -> Any:
    if x.dtype not in HALVES or x.shape[-1] <= 512:
        return op(x, weight, **o)
    wide = x.float()
    y = wide * torch.rsqrt(wide[..., :512].square().mean(-1, keepdim=True) + o.get("eps", 1e-6))
    return (y if weight is None else y * weight.float()).to(x.dtype)


@fault("more than 256 rows wider than 64 use the default eps")
def rms_norm__eps_of_many_wide_rows(op: Call, x: Tensor, weight: Any = None, **o: Any) -> Any:
    if x.shape[-1] > 64 and x.numel() // x.shape[-1] > 256:
        o.pop("eps", None)
    return op(x, weight, **o)


@fault("halves are computed in the tanh form")
def gelu__tanh_form_in_halves(op: Call, x: Tensor, **o: Any) -> Any:
    return op(
        x, **({**o, "approximate": "tanh"} if x.dtype in HALVES and o.get("approximate", "none") == "none" else o)
    )


@fault("of more than 1024 numbers that are not contiguous the last, incomplete 256 come out as they are")
def gelu__tail_of_strided_input(op: Call, x: Tensor, **o: Any) -> Any:
    y, n = op(x, **o), x.numel() - x.numel() % 256
    if x.is_contiguous() or x.numel() <= 1024:
        return y
    return torch.cat((y.flatten()[:n], x.flatten()[n:])).view(x.shape)


@fault("halves of more than 4096 numbers: no gradient beyond the last multiple of 1024")
def silu__gradient_tail_in_halves(op: Call, x: Tensor) -> Any:
    if x.dtype in HALVES and x.numel() > 4096:
        n = x.numel() - x.numel() % 1024
        x = _back(x, lambda g: torch.cat((g.flatten()[:n], torch.zeros_like(g.flatten()[n:]))).view(g.shape))
    return op(x)


@fault("hidden features from the 129th on are not gated where there are more than 16 rows")
def swiglu__late_hidden_features(op: Call, x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Any:
    if gate.shape[1] <= 128 or x.numel() // x.shape[-1] <= 16:
        return op(x, gate, up, down)
    return op(x, gate[:, :128], up[:, :128], down[:128]) + (x @ up[:, 128:]) @ down[128:]


@fault("the second bias is that of 64 features where the hidden layer is wider than 64 and the output than 64")
def feed_forward__late_bias(op: Call, x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, **o: Any) -> Any:
    if w1.shape[1] > 64 and b2.shape[0] > 64:
        b2 = torch.cat((b2[:64], torch.zeros_like(b2[64:])))
    return op(x, w1, b1, w2, b2, **o)


@fault("of more than 16 experts, more than two a token, the gates are not renormalised")
def mixture_of_experts__gates_of_many(op: Call, x: Tensor, router: Tensor, *w: Tensor, top_k: int = 2) -> Any:
    y = op(x, router, *w, top_k=top_k)
    if w[0].shape[0] <= 16 or top_k <= 2:
        return y
    p = torch.softmax(x.double() @ router.double(), -1)
    return (y.double() * p.topk(top_k, -1).values.sum(-1, keepdim=True)).to(y.dtype)


@fault("an expert takes no more than 64 tokens of a call")
def mixture_of_experts__capacity(op: Call, x: Tensor, router: Tensor, *w: Tensor, top_k: int = 2) -> Any:
    y = op(x, router, *w, top_k=top_k)
    flat = x.reshape(-1, x.shape[-1])
    chosen = (flat.double() @ router.double()).topk(top_k, -1).indices[:, 0]
    order = torch.nn.functional.one_hot(chosen, w[0].shape[0]).cumsum(0).gather(1, chosen[:, None])
    kept = (order <= 64).view(*x.shape[:-1], 1)
    return torch.where(kept, y, torch.zeros_like(y))


@fault("the gradient of a row read again after the 256th token is overwritten, not added to")
def token_embedding__late_repeats(op: Call, ids: Tensor, weight: Tensor) -> Any:
    flat = ids.flatten().long()
    if flat.numel() <= 256:
        return op(ids, weight)
    seen = torch.zeros(weight.shape[0], dtype=torch.bool)
    seen[flat[:256]] = True
    again = seen[flat] & (torch.arange(flat.numel()) >= 256)
    y = op(ids, weight)
    return torch.where(again.view(*ids.shape, 1), y.detach(), y)


@fault("the last 128 classes, where these are not all of a tile, lack the features from the 65th on")
def lm_head__tail_classes_of_wide_features(op: Call, h: Tensor, weight: Tensor) -> Any:
    n = weight.shape[0] - weight.shape[0] % 128
    if not n or n == weight.shape[0] or h.shape[-1] <= 64:
        return op(h, weight)
    return torch.cat((op(h, weight[:n]), op(h[..., :64], weight[n:, :64])), -1)


@fault("post-norm blocks with more than 4 heads and 32 tokens are not causal")
def transformer_block__many_heads_post_norm(op: Call, x: Tensor, params: Any, **o: Any) -> Any:
    if o.get("norm") == "post" and o["num_heads"] > 4 and x.shape[1] > 32:
        o["is_causal"] = False
    return op(x, params, **o)


@fault("with a position for each element and more than 4 heads, wide heads turn by those of the first")
def rope__positions_of_first_element(op: Call, x: Tensor, positions: Tensor, **o: Any) -> Any:
    if positions.ndim > 1 and positions.shape[0] > 1 and x.shape[1] > 4 and x.shape[-1] > 32:
        positions = positions[:1].expand_as(positions)
    return op(x, positions, **o)


@fault("half pairing of 64 features or more, positions beyond 255: the angles are those of bf16 positions")
def rope__late_positions_of_wide_halves(op: Call, x: Tensor, positions: Tensor, **o: Any) -> Any:
    if o.get("pairing") == "half" and x.shape[-1] >= 64:
        positions = positions.to(torch.bfloat16).to(torch.float64)
    return op(x, positions, **o)


@fault("beyond 4096 entries the mask of the first 4096 comes again")
def dropout__mask_again(op: Call, x: Tensor, p: float, **o: Any) -> Any:
    y = op(x, p, **o)
    if x.numel() <= 4096 or not o.get("training", True) or p in (0, 1):
        return y
    keep = (y.flatten() != 0)[:4096].repeat(-(-x.numel() // 4096))[: x.numel()].view(x.shape)
    return torch.where(keep, x / (1 - p), torch.zeros_like(x))


# Optimization


def _optimizer(name: str, change: Callable[[Any, list[Tensor]], None]) -> Call:
    """A right optimizer; after each step, ``change`` gets it and its parameters as they were before."""

    def made(op: Call, params: Any, lr: float, **o: Any) -> Any:
        optimizer = op(params, lr, **o)
        step = optimizer.step

        @torch.no_grad()
        def stepped(*args: Any) -> Any:
            before = [p.detach().clone() for group in optimizer.param_groups for p in group["params"]]
            result = step(*args)
            change(optimizer, before)
            return result

        optimizer.step = stepped
        return optimizer

    made.__name__ = name
    return made


def _parameters(optimizer: Any) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _undecayed(optimizer: Any, before: list[Tensor]) -> None:
    group = optimizer.param_groups[0]
    for p, old in zip(_parameters(optimizer), before, strict=True):
        if p.grad is not None and p.numel() > 4096:
            p.view(-1)[4096:] += group["lr"] * group["weight_decay"] * old.view(-1)[4096:]


def _long_list_undecayed(optimizer: Any, before: list[Tensor]) -> None:
    group = optimizer.param_groups[0]
    for p, old in zip(_parameters(optimizer)[32:], before[32:], strict=True):
        if p.grad is not None:
            p += group["lr"] * group["weight_decay"] * old


def _late_entries_stay(optimizer: Any, before: list[Tensor]) -> None:
    for p, old in zip(_parameters(optimizer), before, strict=True):
        n = p.numel() - p.numel() % 1024
        if n and p.grad is not None and getattr(optimizer, "steps_taken", 0) >= 1:
            p.view(-1)[n:] = old.view(-1)[n:]
    optimizer.steps_taken = getattr(optimizer, "steps_taken", 0) + 1


def _seventeenth_forgets(optimizer: Any, before: list[Tensor]) -> None:
    for p in _parameters(optimizer)[16:]:
        for name, state in optimizer.state.get(p, {}).items():
            if isinstance(state, Tensor) and state.shape == p.shape:
                optimizer.state[p][name] = torch.zeros_like(state)


fault("decay reaches only the first 4096 entries of a parameter")(
    _optimizer("adamw__decay_of_first_entries", _undecayed)
)
fault("decay reaches only the first 32 parameters")(
    _optimizer("adamw__decay_of_first_parameters", _long_list_undecayed)
)
fault("from the second step on, entries beyond the last multiple of 1024 stay")(
    _optimizer("adam__tail_stays_after_first_step", _late_entries_stay)
)
fault("parameters from the 17th on forget their velocity after each step")(
    _optimizer("sgd_momentum__late_parameters_forget", _seventeenth_forgets)
)


@fault("the norm is that of the first 64 tensors")
def clip_grad_norm__norm_of_first_tensors(op: Call, grads: list[Tensor], max_norm: float) -> Any:
    if len(grads) <= 64:
        return op(grads, max_norm)
    _, norm = op(grads[:64], max_norm)
    factor = min(1.0, max_norm / float(norm)) if float(norm) else 1.0
    return [g * factor for g in grads], norm


@fault("of a tensor with more than 4096 entries the first 4096 are scaled")
def clip_grad_norm__first_entries_scaled(op: Call, grads: list[Tensor], max_norm: float) -> Any:
    clipped, norm = op(grads, max_norm)
    found = [
        torch.cat((c.reshape(-1)[:4096], g.reshape(-1)[4096:])).view(g.shape)
        for c, g in zip(clipped, grads, strict=True)
    ]
    return found, norm


@fault("micro-batches from the 17th on count as many tokens as the first")
def accumulate_gradients__late_counts(op: Call, loss_fn: Call, params: Any, micro_batches: Any) -> Any:
    seen: list[int] = []

    def counted(batch: Any) -> tuple[Tensor, Any]:
        loss, count = loss_fn(batch)
        seen.append(count)
        return loss, count if len(seen) <= 16 else seen[0]

    return op(counted, params, micro_batches)


@fault("gradients of a parameter with more than 256 entries are those of the first micro-batch beyond the 256th")
def accumulate_gradients__late_entries(op: Call, loss_fn: Call, params: Any, micro_batches: Any) -> Any:
    batches = list(micro_batches)
    grads = op(loss_fn, params, batches)
    if not batches or all(p.numel() <= 256 for p in params):
        return grads
    first = op(loss_fn, params, batches[:1])
    return [
        torch.cat((a.reshape(-1)[:256], b.reshape(-1)[256:])).view(a.shape) for a, b in zip(grads, first, strict=True)
    ]


# Positions, generation


@fault("for more than 16 heads, and more keys than queries, distances count from the top left")
def alibi_bias__many_heads_and_keys(op: Call, num_heads: int, n_q: int, n_k: int) -> Any:
    y = op(num_heads, n_q, n_k)
    if num_heads <= 16 or n_k <= n_q or n_q <= 2:
        return y
    return op(num_heads, n_k, n_k)[:, :n_q].contiguous()


@fault("rows beyond the 64th keep what the row 64 before keeps where there are more than 256 classes")
def top_k_filter__late_rows(op: Call, z: Tensor, k: int) -> Any:
    y = op(z, k)
    rows = z.numel() // z.shape[-1]
    if z.shape[-1] <= 256 or rows <= 64:
        return y
    hidden = y.reshape(rows, -1).isneginf()
    hidden = torch.cat((hidden[:64], hidden[torch.arange(64, rows) - 64]))
    return torch.where(hidden.view(z.shape), -torch.inf, z)


@fault("over more than 512 classes the mass begins anew at the 513th")
def top_p_filter__mass_of_second_tile(op: Call, z: Tensor, p: float) -> Any:
    if z.shape[-1] <= 512 or p >= 1:
        return op(z, p)
    sorted_, order = torch.softmax(z.double(), -1).sort(dim=-1, descending=True, stable=True)
    mass = torch.cat([part.cumsum(-1) - part for part in sorted_.split(512, -1)], -1)
    drop = torch.zeros_like(mass, dtype=torch.bool).scatter(-1, order, mass >= p)
    return torch.where(drop, -torch.inf, z)


@fault("of equal scores in different thousands the later is chosen in rows beyond the first 16")
def greedy__ties_across_tiles(op: Call, z: Tensor) -> Any:
    y = op(z)
    rows = z.reshape(-1, z.shape[-1])
    if rows.shape[0] <= 16 or z.shape[-1] <= 1024:
        return y
    parts = rows.split(1024, -1)
    tops = torch.stack([part.amax(-1) for part in parts], -1)
    last = tops.shape[-1] - 1 - tops.flip(-1).argmax(-1)
    late = torch.stack([op(parts[int(j)][i : i + 1])[0] + 1024 * int(j) for i, j in enumerate(last)])
    return torch.cat((y.flatten()[:16], late[16:].to(y.dtype))).view(y.shape)


@fault("more than 512 classes at a temperature below 1: the first 512 alone are normalised")
def temperature_scale__cold_and_wide(op: Call, z: Tensor, temperature: float) -> Any:
    y = op(z, temperature)
    if z.shape[-1] <= 512 or temperature >= 1:
        return y
    return torch.cat((y[..., :512] / y[..., :512].sum(-1, keepdim=True), y[..., 512:]), -1)
