"""The backward kernel for a bias: the gradient of the scores, summed over the axes on which the bias was repeated."""

import triton
import triton.language as tl

from veriformer.impl.attention_backends.flash.backward import weights_and_slopes
from veriformer.impl.attention_backends.flash.device import LENGTHS
from veriformer.impl.attention_backends.flash.tiles import load_rows, product


@triton.jit(do_not_specialize=LENGTHS)
def bias_gradients(
    Q, K, V, G, LSE, D, DBIAS, BIAS, MASK, SEED,
    q_b, q_h, q_n, q_d, k_b, k_h, k_n, k_d, v_b, v_h, v_n, v_d, g_b, g_h, g_n, g_d,
    bias_b, bias_h, bias_i, bias_j, mask_b, mask_h, mask_i, mask_j,
    H, GROUP, n_q, n_k, d_k, d_v, shift, window, factor, cap, drop_p, dropout_scale, B, B_BIAS, H_BIAS,
    ONE_ROW: tl.constexpr, ONE_COL: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, CAPPED: tl.constexpr, MASKED: tl.constexpr,
    DROPPED: tl.constexpr, WIDEN: tl.constexpr, M: tl.constexpr, N: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr,
):  # fmt: skip
    """Write `DBIAS [B_BIAS, H_BIAS, n_q or 1, n_k or 1]`.

    One program takes a tile of the bias through all tiles of scores that it was added to.
    """
    cell = tl.program_id(0).to(tl.int64)
    b_first, h_first = cell // H_BIAS, cell % H_BIAS
    b_end = b_first + B // B_BIAS  # a bias has an entry for all of them, or one for each
    h_end = h_first + H // H_BIAS
    row_first, row_end = tl.program_id(1) * M, tl.minimum(tl.program_id(1) * M + M, n_q)
    col_first, col_end = tl.program_id(2) * N, tl.minimum(tl.program_id(2) * N + N, n_k)
    if ONE_ROW:
        row_end = n_q
    if ONE_COL:
        col_end = n_k
    total = tl.zeros([M, N], tl.float32)
    for b in range(b_first, b_end):
        for h in range(h_first, h_end):
            head = b * H + h
            offset = head * n_q
            Q_h, G_h = Q + b * q_b + h * q_h, G + b * g_b + h * g_h
            K_h, V_h = K + b * k_b + h // GROUP * k_h, V + b * v_b + h // GROUP * v_h
            BIAS_h, MASK_h = BIAS + b * bias_b + h * bias_h, MASK + b * mask_b + h * mask_h
            for row in range(row_first, row_end, M):
                rows = row + tl.arange(0, M)
                q = load_rows(Q_h, row, n_q, q_n, d_k, q_d, M, D_K, True, WIDEN)
                g = load_rows(G_h, row, n_q, g_n, d_v, g_d, M, D_V, True, WIDEN)
                lse = tl.load(LSE + offset + rows, mask=rows < n_q, other=float("inf"))
                D_i = tl.load(D + offset + rows, mask=rows < n_q, other=0.0)
                for col in range(col_first, col_end, N):
                    cols = col + tl.arange(0, N)
                    k = load_rows(K_h, col, n_k, k_n, d_k, k_d, N, D_K, True, WIDEN)
                    v = load_rows(V_h, col, n_k, v_n, d_v, v_d, N, D_V, True, WIDEN)
                    _, ds, _, _ = weights_and_slopes(
                        product(q, tl.trans(k)), product(g, tl.trans(v)), lse[:, None], D_i[:, None],
                        rows[:, None], cols[None, :], head, n_q, n_k, shift, window, factor, cap,
                        BIAS_h, bias_i, bias_j, MASK_h, mask_i, mask_j, SEED, drop_p, dropout_scale,
                        True, CAUSAL, WINDOWED, CAPPED, True, MASKED, DROPPED,
                    )  # fmt: skip
                    total += ds
    i, j = row_first + tl.arange(0, M), col_first + tl.arange(0, N)
    if ONE_ROW and ONE_COL:
        tl.store(DBIAS + cell, tl.sum(tl.sum(total, 1), 0))
    elif ONE_ROW:
        tl.store(DBIAS + cell * n_k + j, tl.sum(total, 0), mask=j < n_k)
    elif ONE_COL:
        tl.store(DBIAS + cell * n_q + i, tl.sum(total, 1), mask=i < n_q)
    else:
        where = DBIAS + (cell * n_q + i.to(tl.int64)[:, None]) * n_k + j[None, :]
        tl.store(where, total, mask=(i[:, None] < n_q) & (j[None, :] < n_k))
