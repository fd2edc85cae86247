"""The forward kernel: one program takes a block of queries of one head through the keys that they see."""

import triton
import triton.language as tl

from veriformer.impl.attention_backends.flash.block_ranges import key_block_range
from veriformer.impl.attention_backends.flash.device import LENGTHS, device
from veriformer.impl.attention_backends.flash.scores import kept, scores, visible
from veriformer.impl.attention_backends.flash.tiles import (
    accumulate_pv,
    add_weighed_seen,
    load_rows,
    product,
    store_rows,
)


@device
def _attend(
    o, m, l, q, rows, start, K, V, k_n, k_d, v_n, v_d, d_k, d_v, head,
    n_q, n_k, shift, window, factor, cap, BIAS, bias_i, bias_j, MASK, mask_i, mask_j, SEED, drop_p,
    EDGE: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, CAPPED: tl.constexpr, BIASED: tl.constexpr,
    MASKED: tl.constexpr, DROPPED: tl.constexpr, PADDED: tl.constexpr, WIDEN: tl.constexpr,
    N: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr,
):  # fmt: skip
    """Take one tile into the output, the maximum and the sum of a block of queries."""
    cols = start + tl.arange(0, N)
    i, j = rows[:, None], cols[None, :]
    k = load_rows(K, start, n_k, k_n, d_k, k_d, N, D_K, EDGE or PADDED, WIDEN)
    s, _ = scores(product(q, tl.trans(k)), i, j, n_q, n_k, factor, cap, BIAS, bias_i, bias_j, CAPPED, BIASED)
    if EDGE or MASKED:
        seen = visible(i, j, n_q, n_k, shift, window, MASK, mask_i, mask_j, CAUSAL, WINDOWED, MASKED)
        s = tl.where(seen, s, float("-inf"))
    m_new = tl.maximum(m, tl.max(s, 1))
    p = tl.exp2(s - m_new[:, None])
    alpha = tl.exp2(m - m_new)
    l = l * alpha + tl.sum(p, 1)
    if DROPPED:
        p = tl.where(kept(p, i, j, head, SEED, drop_p), p, 0.0)
    v = load_rows(V, start, n_k, v_n, d_v, v_d, N, D_V, EDGE or PADDED, WIDEN)
    o = o * alpha[:, None]
    o = add_weighed_seen(o, p, v, seen) if EDGE or MASKED else accumulate_pv(o, p, v)
    return o, m_new, l


@triton.jit(do_not_specialize=LENGTHS)
def forward(
    Q, K, V, O, LSE, BIAS, MASK, SEED,
    q_b, q_h, q_n, q_d, k_b, k_h, k_n, k_d, v_b, v_h, v_n, v_d,
    bias_b, bias_h, bias_i, bias_j, mask_b, mask_h, mask_i, mask_j,
    H, GROUP, n_q, n_k, d_k, d_v, shift, window, factor, cap, drop_p, dropout_scale,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, CAPPED: tl.constexpr, BIASED: tl.constexpr, MASKED: tl.constexpr,
    DROPPED: tl.constexpr, PADDED: tl.constexpr, WIDEN: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr,
):  # fmt: skip
    """Write `O [B, H, n_q, d_v]` and the log-sum-exp of each row in base 2, `LSE [B, H, n_q]`, +∞ where it is empty.

    The programs with the most keys start first: under causality those are the last queries.
    """
    head = tl.program_id(0)
    first = (tl.num_programs(1) - 1 - tl.program_id(1)) * M
    b, h = (head // H).to(tl.int64), (head % H).to(tl.int64)
    Q += b * q_b + h * q_h
    K += b * k_b + h // GROUP * k_h
    V += b * v_b + h // GROUP * v_h
    BIAS += b * bias_b + h * bias_h
    MASK += b * mask_b + h * mask_h
    rows = first + tl.arange(0, M)
    q = load_rows(Q, first, n_q, q_n, d_k, q_d, M, D_K, True, WIDEN)
    o = tl.zeros([M, D_V], tl.float32)
    m = tl.full([M], -3.4028234663852886e38, tl.float32)  # finite, for −∞ − (−∞) would be NaN
    l = tl.zeros([M], tl.float32)
    lo, a, b_, hi = key_block_range(first, n_q, n_k, shift, window, CAUSAL, WINDOWED, M, N)
    for start in range(lo, tl.minimum(a, hi), N):
        o, m, l = _attend(
            o, m, l, q, rows, start, K, V, k_n, k_d, v_n, v_d, d_k, d_v, head,
            n_q, n_k, shift, window, factor, cap, BIAS, bias_i, bias_j, MASK, mask_i, mask_j, SEED, drop_p,
            True, CAUSAL, WINDOWED, CAPPED, BIASED, MASKED, DROPPED, PADDED, WIDEN, N, D_K, D_V,
        )  # fmt: skip
    for start in range(a, b_, N):
        o, m, l = _attend(
            o, m, l, q, rows, start, K, V, k_n, k_d, v_n, v_d, d_k, d_v, head,
            n_q, n_k, shift, window, factor, cap, BIAS, bias_i, bias_j, MASK, mask_i, mask_j, SEED, drop_p,
            False, False, False, CAPPED, BIASED, MASKED, DROPPED, PADDED, WIDEN, N, D_K, D_V,
        )  # fmt: skip
    for start in range(b_, hi, N):
        o, m, l = _attend(
            o, m, l, q, rows, start, K, V, k_n, k_d, v_n, v_d, d_k, d_v, head,
            n_q, n_k, shift, window, factor, cap, BIAS, bias_i, bias_j, MASK, mask_i, mask_j, SEED, drop_p,
            True, CAUSAL, WINDOWED, CAPPED, BIASED, MASKED, DROPPED, PADDED, WIDEN, N, D_K, D_V,
        )  # fmt: skip
    o = o * (dropout_scale / tl.where(l == 0, 1.0, l))[:, None]
    offset = head.to(tl.int64) * n_q
    store_rows(O + offset * d_v, o, rows, n_q, tl.arange(0, D_V), d_v)
    tl.store(LSE + offset + rows, tl.where(l == 0, float("inf"), m + tl.log2(l)), mask=rows < n_q)
