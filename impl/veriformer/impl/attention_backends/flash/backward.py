"""The backward kernels: gradients of queries, of keys and values, and what both need of each row.

With P the weights, P̃ and G Vᵀ~ after dropout, and D_i = Σ_c g_ic o_ic:
∂V = P̃ᵀ G,  ∂S = P ⊙ (G Vᵀ~ − D),  ∂Q = scale ∂S K,  ∂K = scale ∂Sᵀ Q.
"""

import triton
import triton.language as tl

from veriformer.impl.attention_backends.flash.block_ranges import key_block_range, query_block_range
from veriformer.impl.attention_backends.flash.device import LENGTHS, device
from veriformer.impl.attention_backends.flash.scores import kept, scores, visible
from veriformer.impl.attention_backends.flash.tiles import (
    accumulate_pv,
    add_sloped,
    add_sloped_seen,
    load_rows,
    product,
    store_rows,
)


@triton.jit
def row_products(
    O, G, D, g_b, g_h, g_n, g_d, H, n_q, d_v, WIDEN: tl.constexpr, M: tl.constexpr, D_V: tl.constexpr
):  # fmt: skip
    """Write `D [B, H, n_q]`, the product of each row's output and cotangent."""
    head, first = tl.program_id(0), tl.program_id(1) * M
    rows = first + tl.arange(0, M)
    b, h = (head // H).to(tl.int64), (head % H).to(tl.int64)
    offset = head.to(tl.int64) * n_q
    o = load_rows(O + offset * d_v, first, n_q, d_v, d_v, 1, M, D_V, True, WIDEN).to(tl.float32)
    g = load_rows(G + b * g_b + h * g_h, first, n_q, g_n, d_v, g_d, M, D_V, True, WIDEN).to(tl.float32)
    tl.store(D + offset + rows, tl.sum(o * g, 1), mask=rows < n_q)


@device
def weights_and_slopes(
    s, dp, lse, D, i, j, head,
    n_q, n_k, shift, window, factor, cap, BIAS, bias_i, bias_j, MASK, mask_i, mask_j, SEED, drop_p, dropout_scale,
    EDGE: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, CAPPED: tl.constexpr, BIASED: tl.constexpr,
    MASKED: tl.constexpr, DROPPED: tl.constexpr,
):  # fmt: skip
    """From the products `q kᵀ` and `g vᵀ` of a tile, return P̃, ∂S before the soft-cap's slope and after, and the seen.

    `lse` and `D` broadcast as `i` does. All are 0 where hidden, whatever the products are there.
    """
    s, slope = scores(s, i, j, n_q, n_k, factor, cap, BIAS, bias_i, bias_j, CAPPED, BIASED)
    p = tl.exp2(s - lse)
    seen = p >= 0
    if EDGE or MASKED:
        seen = visible(i, j, n_q, n_k, shift, window, MASK, mask_i, mask_j, CAUSAL, WINDOWED, MASKED)
        p = tl.where(seen, p, 0.0)
    p_kept = p
    if DROPPED:
        keep = kept(p, i, j, head, SEED, drop_p)
        p_kept = tl.where(keep, p, 0.0)
        dp = tl.where(keep, dp * dropout_scale, 0.0)
    ds = p * (dp - D)
    if EDGE or MASKED:
        ds = tl.where(seen, ds, 0.0)
    ds_capped = ds
    if CAPPED:
        ds_capped = ds * slope
        if EDGE or MASKED:
            ds_capped = tl.where(seen, ds_capped, 0.0)
    return p_kept, ds, ds_capped, seen


@device
def _to_queries(
    dq, broken, q, g, lse, D, rows, start, K, V, k_n, k_d, v_n, v_d, d_k, d_v, head,
    n_q, n_k, shift, window, factor, cap, BIAS, bias_i, bias_j, MASK, mask_i, mask_j, SEED, drop_p, dropout_scale,
    EDGE: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, CAPPED: tl.constexpr, BIASED: tl.constexpr,
    MASKED: tl.constexpr, DROPPED: tl.constexpr, PADDED: tl.constexpr, WIDEN: tl.constexpr,
    N: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr,
):  # fmt: skip
    """Add what one tile contributes to the gradient of a block of queries, and to the count of what spoils it."""
    cols = start + tl.arange(0, N)
    k = load_rows(K, start, n_k, k_n, d_k, k_d, N, D_K, EDGE or PADDED, WIDEN)
    v = load_rows(V, start, n_k, v_n, d_v, v_d, N, D_V, EDGE or PADDED, WIDEN)
    _, _, ds, seen = weights_and_slopes(
        product(q, tl.trans(k)), product(g, tl.trans(v)), lse[:, None], D[:, None], rows[:, None], cols[None, :], head,
        n_q, n_k, shift, window, factor, cap, BIAS, bias_i, bias_j, MASK, mask_i, mask_j, SEED, drop_p, dropout_scale,
        EDGE, CAUSAL, WINDOWED, CAPPED, BIASED, MASKED, DROPPED,
    )  # fmt: skip
    if EDGE or MASKED:
        dq, broken = add_sloped_seen(dq, broken, ds, k, seen)
    else:
        dq = add_sloped(dq, ds, k)
    return dq, broken


@triton.jit(do_not_specialize=LENGTHS)
def query_gradients(
    Q, K, V, G, LSE, D, DQ, BIAS, MASK, SEED,
    q_b, q_h, q_n, q_d, k_b, k_h, k_n, k_d, v_b, v_h, v_n, v_d, g_b, g_h, g_n, g_d,
    bias_b, bias_h, bias_i, bias_j, mask_b, mask_h, mask_i, mask_j,
    H, GROUP, n_q, n_k, d_k, d_v, shift, window, scale, factor, cap, drop_p, dropout_scale,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, CAPPED: tl.constexpr, BIASED: tl.constexpr, MASKED: tl.constexpr,
    DROPPED: tl.constexpr, PADDED: tl.constexpr, WIDEN: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr,
):  # fmt: skip
    """Write `DQ [B, H, n_q, d_k]`: one program takes a block of queries through the keys that they see."""
    head = tl.program_id(0)
    first = (tl.num_programs(1) - 1 - tl.program_id(1)) * M
    b, h = (head // H).to(tl.int64), (head % H).to(tl.int64)
    K += b * k_b + h // GROUP * k_h
    V += b * v_b + h // GROUP * v_h
    BIAS += b * bias_b + h * bias_h
    MASK += b * mask_b + h * mask_h
    offset = head.to(tl.int64) * n_q
    rows = first + tl.arange(0, M)
    q = load_rows(Q + b * q_b + h * q_h, first, n_q, q_n, d_k, q_d, M, D_K, True, WIDEN)
    g = load_rows(G + b * g_b + h * g_h, first, n_q, g_n, d_v, g_d, M, D_V, True, WIDEN)
    lse = tl.load(LSE + offset + rows, mask=rows < n_q, other=float("inf"))
    D_i = tl.load(D + offset + rows, mask=rows < n_q, other=0.0)
    dq, broken = tl.zeros([M, D_K], tl.float32), tl.zeros([M, D_K], tl.float32)
    lo, a, b_, hi = key_block_range(first, n_q, n_k, shift, window, CAUSAL, WINDOWED, M, N)
    for start in range(lo, tl.minimum(a, hi), N):
        dq, broken = _to_queries(
            dq, broken, q, g, lse, D_i, rows, start, K, V, k_n, k_d, v_n, v_d, d_k, d_v, head,
            n_q, n_k, shift, window, factor, cap, BIAS, bias_i, bias_j, MASK, mask_i, mask_j, SEED, drop_p,
            dropout_scale, True, CAUSAL, WINDOWED, CAPPED, BIASED, MASKED, DROPPED, PADDED, WIDEN, N, D_K, D_V,
        )  # fmt: skip
    for start in range(a, b_, N):
        dq, broken = _to_queries(
            dq, broken, q, g, lse, D_i, rows, start, K, V, k_n, k_d, v_n, v_d, d_k, d_v, head,
            n_q, n_k, shift, window, factor, cap, BIAS, bias_i, bias_j, MASK, mask_i, mask_j, SEED, drop_p,
            dropout_scale, False, False, False, CAPPED, BIASED, MASKED, DROPPED, PADDED, WIDEN, N, D_K, D_V,
        )  # fmt: skip
    for start in range(b_, hi, N):
        dq, broken = _to_queries(
            dq, broken, q, g, lse, D_i, rows, start, K, V, k_n, k_d, v_n, v_d, d_k, d_v, head,
            n_q, n_k, shift, window, factor, cap, BIAS, bias_i, bias_j, MASK, mask_i, mask_j, SEED, drop_p,
            dropout_scale, True, CAUSAL, WINDOWED, CAPPED, BIASED, MASKED, DROPPED, PADDED, WIDEN, N, D_K, D_V,
        )  # fmt: skip
    dq = tl.where(broken > 0, float("nan"), dq * scale)
    store_rows(DQ + offset * d_k, dq, rows, n_q, tl.arange(0, D_K), d_k)


@device
def _to_keys(
    dk, dv, k, v, cols, start, Q, G, LSE, D, q_n, q_d, g_n, g_d, d_k, d_v, head,
    n_q, n_k, shift, window, factor, cap, BIAS, bias_i, bias_j, MASK, mask_i, mask_j, SEED, drop_p, dropout_scale,
    EDGE: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, CAPPED: tl.constexpr, BIASED: tl.constexpr,
    MASKED: tl.constexpr, DROPPED: tl.constexpr, PADDED: tl.constexpr, WIDEN: tl.constexpr,
    M: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr,
):  # fmt: skip
    """Add what one tile contributes to the gradients of a block of keys and values; the tile is transposed."""
    rows = start + tl.arange(0, M)
    q = load_rows(Q, start, n_q, q_n, d_k, q_d, M, D_K, EDGE or PADDED, WIDEN)
    g = load_rows(G, start, n_q, g_n, d_v, g_d, M, D_V, EDGE or PADDED, WIDEN)
    lse = tl.load(LSE + rows, mask=rows < n_q, other=float("inf"))
    D_i = tl.load(D + rows, mask=rows < n_q, other=0.0)
    p, _, ds, _ = weights_and_slopes(
        product(k, tl.trans(q)), product(v, tl.trans(g)), lse[None, :], D_i[None, :], rows[None, :], cols[:, None],
        head, n_q, n_k, shift, window, factor, cap, BIAS, bias_i, bias_j, MASK, mask_i, mask_j, SEED, drop_p,
        dropout_scale, EDGE, CAUSAL, WINDOWED, CAPPED, BIASED, MASKED, DROPPED,
    )  # fmt: skip
    return add_sloped(dk, ds, q), accumulate_pv(dv, p, g)


@triton.jit(do_not_specialize=LENGTHS)
def key_gradients(
    Q, K, V, G, LSE, D, DK, DV, BIAS, MASK, SEED,
    q_b, q_h, q_n, q_d, k_b, k_h, k_n, k_d, v_b, v_h, v_n, v_d, g_b, g_h, g_n, g_d,
    bias_b, bias_h, bias_i, bias_j, mask_b, mask_h, mask_i, mask_j,
    H, GROUP, n_q, n_k, d_k, d_v, shift, window, scale, factor, cap, drop_p, dropout_scale,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, CAPPED: tl.constexpr, BIASED: tl.constexpr, MASKED: tl.constexpr,
    DROPPED: tl.constexpr, PADDED: tl.constexpr, WIDEN: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr,
):  # fmt: skip
    """Write `DK [B, G, n_k, d_k]` and `DV [B, G, n_k, d_v]`.

    One program takes a block of keys through all queries, of every head that reads them, that see them: nothing is
    added up between programs, so the result is the same each time.
    """
    group, first = tl.program_id(0), tl.program_id(1) * N
    G_HEADS = H // GROUP
    b, kv_head = (group // G_HEADS).to(tl.int64), (group % G_HEADS).to(tl.int64)
    cols = first + tl.arange(0, N)
    k = load_rows(K + b * k_b + kv_head * k_h, first, n_k, k_n, d_k, k_d, N, D_K, True, WIDEN)
    v = load_rows(V + b * v_b + kv_head * v_h, first, n_k, v_n, d_v, v_d, N, D_V, True, WIDEN)
    dk, dv = tl.zeros([N, D_K], tl.float32), tl.zeros([N, D_V], tl.float32)
    lo, a, b_, hi = query_block_range(first, n_q, n_k, shift, window, CAUSAL, WINDOWED, M, N)
    for member in range(GROUP):
        h = kv_head * GROUP + member
        head = group * GROUP + member
        Q_h, G_h = Q + b * q_b + h * q_h, G + b * g_b + h * g_h
        LSE_h, D_h = LSE + head.to(tl.int64) * n_q, D + head.to(tl.int64) * n_q
        BIAS_h, MASK_h = BIAS + b * bias_b + h * bias_h, MASK + b * mask_b + h * mask_h
        for start in range(lo, tl.minimum(a, hi), M):
            dk, dv = _to_keys(
                dk, dv, k, v, cols, start, Q_h, G_h, LSE_h, D_h, q_n, q_d, g_n, g_d, d_k, d_v, head, n_q, n_k,
                shift, window, factor, cap, BIAS_h, bias_i, bias_j, MASK_h, mask_i, mask_j, SEED, drop_p, dropout_scale,
                True, CAUSAL, WINDOWED, CAPPED, BIASED, MASKED, DROPPED, PADDED, WIDEN, M, D_K, D_V,
            )  # fmt: skip
        for start in range(a, b_, M):
            dk, dv = _to_keys(
                dk, dv, k, v, cols, start, Q_h, G_h, LSE_h, D_h, q_n, q_d, g_n, g_d, d_k, d_v, head, n_q, n_k,
                shift, window, factor, cap, BIAS_h, bias_i, bias_j, MASK_h, mask_i, mask_j, SEED, drop_p, dropout_scale,
                False, False, False, CAPPED, BIASED, MASKED, DROPPED, PADDED, WIDEN, M, D_K, D_V,
            )  # fmt: skip
        for start in range(b_, hi, M):
            dk, dv = _to_keys(
                dk, dv, k, v, cols, start, Q_h, G_h, LSE_h, D_h, q_n, q_d, g_n, g_d, d_k, d_v, head, n_q, n_k,
                shift, window, factor, cap, BIAS_h, bias_i, bias_j, MASK_h, mask_i, mask_j, SEED, drop_p, dropout_scale,
                True, CAUSAL, WINDOWED, CAPPED, BIASED, MASKED, DROPPED, PADDED, WIDEN, M, D_K, D_V,
            )  # fmt: skip
    offset = group.to(tl.int64) * n_k
    store_rows(DK + offset * d_k, dk * scale, cols, n_k, tl.arange(0, D_K), d_k)
    store_rows(DV + offset * d_v, dv * dropout_scale, cols, n_k, tl.arange(0, D_V), d_v)
