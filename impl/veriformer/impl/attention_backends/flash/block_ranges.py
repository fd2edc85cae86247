"""Ranges of the tiles that a program visits: those with a visible pair, and among them those that need no mask."""

import triton.language as tl

from veriformer.impl.attention_backends.flash.device import device


@device
def key_block_range(
    first_row, n_q, n_k, shift, window, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, M: tl.constexpr, N: tl.constexpr
):
    """Return `(lo, a, b, hi)`: `M` queries see keys of `[lo, hi)`, and all of them see all of `[a, b)`.

    All but `hi` are multiples of `N`.
    """
    first, last = first_row + shift, tl.minimum(first_row + M, n_q) - 1 + shift
    lo, a = 0, 0
    hi, b = n_k, n_k // N * N
    if CAUSAL:
        hi = tl.minimum(n_k, last + 1)
        b = tl.minimum(tl.maximum(first + 1, 0), n_k) // N * N
    if WINDOWED:
        lo = tl.maximum(first - window + 1, 0) // N * N
        a = (tl.maximum(last - window + 1, 0) + N - 1) // N * N
    return lo, a, tl.maximum(a, b), hi


@device
def query_block_range(
    first_col, n_q, n_k, shift, window, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, M: tl.constexpr, N: tl.constexpr
):
    """Return `(lo, a, b, hi)`: `N` keys are seen by queries of `[lo, hi)`, and all of them by all of `[a, b)`.

    All but `hi` are multiples of `M`.
    """
    first, last = first_col - shift, tl.minimum(first_col + N, n_k) - 1 - shift
    lo, a = 0, 0
    hi, b = n_q, n_q // M * M
    if CAUSAL:
        lo = tl.maximum(first, 0) // M * M
        a = (tl.maximum(last, 0) + M - 1) // M * M
    if WINDOWED:
        hi = tl.minimum(n_q, last + window)
        b = tl.minimum(tl.maximum(first + window, 0), n_q) // M * M
    return lo, a, tl.maximum(a, b), hi
