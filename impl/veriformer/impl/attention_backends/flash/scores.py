"""Scores of a tile of products of queries and keys: scaling, hidden pairs, dropout.

`i` and `j` are positions of queries and keys shaped to broadcast, `[M, 1]` and `[1, N]` or the other way round, so that
a tile and its transpose are treated alike. Scores are kept in base 2, multiplied by log2 e, since GPUs have an
instruction for powers of two.
"""

import triton.language as tl

from veriformer.impl.attention_backends.flash.device import device

LOG2_E = tl.constexpr(1.4426950408889634)


@device
def tanh(x):
    """Return tanh with a small relative error at both ends: Lambert's continued fraction near 0, an exponential beyond.

    The fraction is cut after 9, and differs from tanh by less than 2⁻²⁸ of it below 5/8.
    """
    y = tl.minimum(x * x, 1.0)
    near = x * (945 + y * (105 + y)) / (945 + y * (420 + 15 * y))
    far = 1 - 2 / (tl.exp2(tl.abs(x) * (2 * LOG2_E)) + 1)
    return tl.where(tl.abs(x) < 0.625, near, tl.where(x < 0, -far, far))


@device
def scores(
    s, i, j, n_q, n_k, factor, cap, BIAS, bias_i, bias_j, CAPPED: tl.constexpr, BIASED: tl.constexpr
):  # fmt: skip
    """Return the scores in base 2 and the slope of the soft-cap, 1 where there is none.

    Without a soft-cap `factor` is scale · log2 e; with one, it is scale / cap, and `cap` is softcap · log2 e.
    """
    s = s * factor
    slope = 1.0
    if CAPPED:
        t = tanh(s)
        slope = 1 - t * t
        s = t * cap
    if BIASED:
        where = BIAS + i.to(tl.int64) * bias_i + j.to(tl.int64) * bias_j
        s += tl.load(where, mask=(i < n_q) & (j < n_k), other=0.0) * LOG2_E
    return s, slope


@device
def visible(
    i, j, n_q, n_k, shift, window, MASK, mask_i, mask_j,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Return which query sees which key, bool; none beyond the ends."""
    seen = (i < n_q) & (j < n_k)
    if CAUSAL:
        seen = seen & (j <= i + shift)
    if WINDOWED:
        seen = seen & (j > i + shift - window)
    if MASKED:
        where = MASK + i.to(tl.int64) * mask_i + j.to(tl.int64) * mask_j
        seen = seen & (tl.load(where, mask=seen, other=0) != 0)
    return seen


@device
def kept(like, i, j, head, SEED, drop_p):
    """Draw which weights survive dropout: a function of seed, head, query and key alone, whatever the tiles are."""
    zero = tl.zeros_like(like).to(tl.int32)
    drawn, _, _, _ = tl.philox(tl.load(SEED), zero + j, zero + i, (zero + head).to(tl.int32), zero)
    return tl.uint_to_uniform_float(drawn) >= drop_p
