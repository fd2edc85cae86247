"""Loads and products of tiles in kernels.

`WIDEN` stands for Triton's interpreter: it keeps bfloat16 as bit patterns, so there every tile becomes float32 as soon
as it is read, and weights are not rounded before they are multiplied, as a GPU must round them to use its matrix units.
"""

import triton.language as tl

from veriformer.impl.attention_backends.flash.device import device


@device
def load_rows(
    x, start, n, stride, d, stride_d, ROWS: tl.constexpr, COLS: tl.constexpr, CHECK: tl.constexpr, WIDEN: tl.constexpr
):
    """Return `ROWS` rows of `x` from `start` on, 0 beyond `n` rows and `d` columns if `CHECK`.

    Only the way to the first row is counted in 64 bits: the rest is the same for every tile, and stays in registers.
    """
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, COLS)[None, :]
    if WIDEN:  # the interpreter looks after overflow in 32 bits, at great length
        i, j = i.to(tl.int64), j.to(tl.int64)
    where = x + tl.cast(start, tl.int64) * stride + (i * stride + j * stride_d)
    inside = (i < n - start) & (j < d)
    tile = tl.load(where, mask=inside, other=0.0) if CHECK else tl.load(where)
    return tile.to(tl.float32) if WIDEN else tile


@device
def store_rows(x, tile, rows, n, cols, d):
    """Write a tile to the contiguous `x [n, d]`."""
    where = x + rows.to(tl.int64)[:, None] * d + cols[None, :]
    tl.store(where, tile.to(x.dtype.element_ty), mask=(rows[:, None] < n) & (cols[None, :] < d))


@device
def product(a, b):
    """Return `a @ b` of two tiles that were read, accumulated in float32."""
    return tl.dot(a, b, input_precision="ieee")


@device
def accumulate_pv(total, weights, rows):
    """Return `total + weights @ rows` for weights in [0, 1], rounded to the dtype of the rows."""
    return tl.dot(weights.to(rows.dtype), rows, total, input_precision="ieee")


@device
def add_sloped(total, ds, rows):
    """Return `total + ds @ rows` for the gradient of scores, which may leave the range of float16.

    TF32 has the digits of float16 and the range of float32, so it holds float16 rows exactly.
    """
    if rows.dtype == tl.float16:
        total = tl.dot(ds, rows.to(tl.float32), total, input_precision="tf32")
    else:
        total = tl.dot(ds.to(rows.dtype), rows, total, input_precision="ieee")
    return total


@device
def broken(rows):
    """Return 1 where a row holds NaN or ∞, which a weight of zero does not remove from a product, and 0 elsewhere."""
    return tl.where(tl.abs(rows.to(tl.float32)) < float("inf"), 0, 1)


@device
def meets(seen, bad, rows):
    """Return where a query sees something broken: `[queries, width]`, bool."""
    return tl.dot(seen.to(rows.dtype), bad.to(rows.dtype), input_precision="ieee") > 0


@device
def add_weighed_seen(total, weights, rows, seen):
    """Return `accumulate_pv`, in which hidden rows take no part whatever they hold."""
    bad = broken(rows)
    if tl.max(bad) > 0:
        whole = tl.where(bad > 0, 0.0, rows).to(rows.dtype)
        met = meets(seen, bad, rows)
        total = tl.where(met, accumulate_pv(total, weights, rows), accumulate_pv(total, weights, whole))
    else:
        total = accumulate_pv(total, weights, rows)
    return total


@device
def add_sloped_seen(total, ds, rows, seen):
    """Return `add_sloped`, in which hidden rows take no part whatever they hold."""
    bad = broken(rows)
    if tl.max(bad) > 0:
        whole = tl.where(bad > 0, 0.0, rows).to(rows.dtype)
        met = meets(seen, bad, rows)
        total = tl.where(met, add_sloped(total, ds, rows), add_sloped(total, ds, whole))
    else:
        total = add_sloped(total, ds, rows)
    return total
