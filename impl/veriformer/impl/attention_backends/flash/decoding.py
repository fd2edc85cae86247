"""Attention of one query per head over a cache whose length the device knows: keys in pieces, then pieces together.

A step of decoding has few queries and many keys: one program for each group of heads would leave a card idle. So the
keys are cut into a fixed number of pieces, of a size that follows from the length; a program takes one of them through
all heads of a group, which are the rows of one tile, so that keys are read once. A second kernel puts the pieces
together, always in the same order.
"""

import functools

import torch
import triton
import triton.language as tl
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.attention_backends.flash.device import LENGTHS
from veriformer.impl.attention_backends.flash.forward import _attend
from veriformer.impl.attention_backends.flash.function import INTERPRETED, Kernels, Plan
from veriformer.impl.attention_backends.flash.launch import Blocks, Launch, padded
from veriformer.impl.attention_backends.flash.tiles import load_rows, store_rows

MOST_PIECES = 64
_TILE_BYTES = 2**14
_PROGRAMS_PER_PROCESSOR = 2


@triton.jit(do_not_specialize=LENGTHS)
def attend_pieces(
    Q, K, V, LENGTH, O, TOP, SUM, BIAS, MASK, SEED,
    q_b, q_h, q_n, q_d, k_b, k_h, k_n, k_d, v_b, v_h, v_n, v_d,
    bias_b, bias_h, bias_i, bias_j, mask_b, mask_h, mask_i, mask_j,
    H, GROUP, n_q, n_k, d_k, d_v, shift, window, factor, cap, drop_p, dropout_scale,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, CAPPED: tl.constexpr, BIASED: tl.constexpr, MASKED: tl.constexpr,
    DROPPED: tl.constexpr, PADDED: tl.constexpr, WIDEN: tl.constexpr, PIECES: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr,
):  # fmt: skip
    """Write `O [B, H, PIECES, d_v]`, not yet divided, and each row's maximum and sum, `TOP` and `SUM [B, H, PIECES]`.

    `LENGTH [1]` counts the keys that are there: the query stands at the last of them, and what is stored after it is
    never read. All is in float32, and in base 2. A piece without a visible key has the sum 0.
    """
    group, piece = tl.program_id(0), tl.program_id(1)
    G = H // GROUP
    b, g = (group // G).to(tl.int64), (group % G).to(tl.int64)
    Q += b * q_b + g * GROUP * q_h
    K += b * k_b + g * k_h
    V += b * v_b + g * v_h
    MASK += b * mask_b
    length, low = tl.load(LENGTH).to(tl.int32), 0
    if WINDOWED:
        low = tl.maximum(length - window, 0)
    size = ((length - low + N - 1) // N + PIECES - 1) // PIECES * N
    first = low + piece * size
    end = tl.minimum(first + size, length)
    whole = first + tl.maximum(end - first, 0) // N * N
    rows = tl.arange(0, M)
    q = load_rows(Q, 0, GROUP, q_h, d_k, q_d, M, D_K, True, WIDEN)
    o = tl.zeros([M, D_V], tl.float32)
    m = tl.full([M], -3.4028234663852886e38, tl.float32)  # finite, for −∞ − (−∞) would be NaN
    l = tl.zeros([M], tl.float32)
    for start in range(first, whole, N):
        o, m, l = _attend(
            o, m, l, q, rows, start, K, V, k_n, k_d, v_n, v_d, d_k, d_v, group,
            GROUP, end, 0, window, factor, cap, BIAS, bias_i, bias_j, MASK, 0, mask_j, SEED, drop_p,
            False, False, False, CAPPED, False, MASKED, False, PADDED, WIDEN, N, D_K, D_V,
        )  # fmt: skip
    for start in range(whole, end, N):
        o, m, l = _attend(
            o, m, l, q, rows, start, K, V, k_n, k_d, v_n, v_d, d_k, d_v, group,
            GROUP, end, 0, window, factor, cap, BIAS, bias_i, bias_j, MASK, 0, mask_j, SEED, drop_p,
            True, False, False, CAPPED, False, MASKED, False, PADDED, WIDEN, N, D_K, D_V,
        )  # fmt: skip
    place = group.to(tl.int64) * GROUP * PIECES + piece
    store_rows(O + place * d_v, o, rows * PIECES, GROUP * PIECES, tl.arange(0, D_V), d_v)
    tl.store(TOP + place + rows * PIECES, m, mask=rows < GROUP)
    tl.store(SUM + place + rows * PIECES, l, mask=rows < GROUP)


@triton.jit
def join_pieces(O, TOP, SUM, OUT, d_v, PIECES: tl.constexpr, D_V: tl.constexpr):
    """Write `OUT [B, H, 1, d_v]` from what `attend_pieces` wrote; 0 where no key was visible."""
    head = tl.program_id(0).to(tl.int64)
    pieces, cols = tl.arange(0, PIECES), tl.arange(0, D_V)
    m = tl.load(TOP + head * PIECES + pieces)
    weights = tl.exp2(m - tl.max(m, 0))
    total = tl.sum(weights * tl.load(SUM + head * PIECES + pieces), 0)
    where = O + head * PIECES * d_v + pieces[:, None] * d_v + cols[None, :]
    o = tl.load(where, mask=cols[None, :] < d_v, other=0.0)
    o = tl.sum(o * weights[:, None], 0) / tl.where(total == 0, 1.0, total)
    tl.store(OUT + head * d_v + cols, o.to(OUT.dtype.element_ty), mask=cols < d_v)


class CacheKernels(Kernels):
    """The kernels of one query per head, `q [B, H, 1, d_k]`, over the keys and values of a cache."""

    def attend(self, length: Tensor, pieces: int) -> Tensor:
        """Return the output `[B, H, 1, d_v]`, not yet in the dtype of the call, over the first `length [1]` keys."""
        parts = self._memory((self.B, self.H, pieces, self.d_v), torch.float32)
        top, total = (self._memory((self.B, self.H, pieces), torch.float32) for _ in range(2))
        out = self._result(self.B, self.H, 1, self.d_v)
        self._run(
            attend_pieces, (self.B * self.G, pieces), self.plan.launch.forward,
            Q=self.q, K=self.k, V=self.v, LENGTH=length, O=parts, TOP=top, SUM=total, PIECES=pieces,
            **self._scores(), **self._width(),
        )  # fmt: skip
        self._run(
            join_pieces, (self.B * self.H,), None,
            O=parts, TOP=top, SUM=total, OUT=out, d_v=self.d_v, PIECES=pieces, D_V=padded(self.d_v),
        )  # fmt: skip
        return out


def decode(
    q: Tensor, k: Tensor, v: Tensor, length: Tensor, mask: Tensor | None, window: int | None, scale: float,
    softcap: float | None, pieces: int | None = None,
) -> Tensor:  # fmt: skip
    """Run the kernels, in `pieces` (a power of two) or as many as keep the card busy; see `attend_to_cache`."""
    run = _decode if checks.can_read_values(q) else _closed_decode
    o: Tensor = run(q, k, v, length, mask, window, scale, softcap, pieces)
    return o


def _decode(
    q: Tensor, k: Tensor, v: Tensor, length: Tensor, mask: Tensor | None, window: int | None, scale: float,
    softcap: float | None, pieces: int | None,
) -> Tensor:  # fmt: skip
    blocks = decoding_blocks(q.shape[1] // k.shape[1], max(q.shape[3], v.shape[3]), q.dtype)
    seen = None if mask is None else mask.view(torch.uint8)
    plan = Plan(True, window, scale, softcap, 0.0, Launch(blocks, blocks, blocks, blocks))
    if pieces is None:
        pieces = piece_count(q.shape[0] * k.shape[1], k.shape[2], blocks.cols, _processors(q.device))
    return CacheKernels(plan, q, k, v, None, seen, None).attend(length, pieces).to(q.dtype)


_closed_decode = torch.library.custom_op("veriformer::decode", _decode, mutates_args=())


@_closed_decode.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, *_: object) -> Tensor:
    return q.new_empty(*q.shape[:3], v.shape[3])


def decoding_blocks(group: int, width: int, dtype: torch.dtype) -> Blocks:
    """Return tiles of all heads of a group by as many keys as make 16 KiB, at most 128 of them."""
    rows, bytes_ = padded(group), padded(width) * dtype.itemsize
    return Blocks(rows, 16 if INTERPRETED else min(128, max(16, _TILE_BYTES // bytes_)), 4, 2)


def piece_count(groups: int, capacity: int, cols: int, processors: int) -> int:
    """Return the power of two of pieces that gives every processor of a card two programs, if there are so many tiles.

    groups: batch elements times key heads; cols: keys of a tile.
    """
    wanted = min(MOST_PIECES, -(-_PROGRAMS_PER_PROCESSOR * processors // groups), -(-capacity // cols))
    return 1 << (max(wanted, 1) - 1).bit_length()


@functools.cache
def _processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4
