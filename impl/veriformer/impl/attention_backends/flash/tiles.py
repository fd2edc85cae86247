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
def finite(rows):
    """Return which numbers of a tile are finite, bool."""
    return tl.abs(rows.to(tl.float32)) < float("inf")


@device
def cleaned(rows):
    """Return a tile with 0 in place of NaN and ±∞, which a weight of zero does not remove from a product."""
    return tl.where(finite(rows), rows, 0.0).to(rows.dtype)


@device
def add_weighed_seen(total, weights, rows, seen):
    """Return `accumulate_pv`, in which hidden rows take no part whatever they hold, of at most 128 rows.

    What is not finite is counted by a second product: NaN as 2⁻⁸, ∞ as 1 and −∞ as 2⁸, so that the sum tells how many
    of each a query sees. There is no branch on what the rows hold: Triton compiles a product under a condition on data
    into wrong code for halves.
    """
    wide = rows.to(tl.float32)
    code = tl.where(wide == float("inf"), 1.0, tl.where(wide == float("-inf"), 256.0, 0.00390625))
    count = tl.dot(seen.to(rows.dtype), tl.where(finite(rows), 0.0, code).to(rows.dtype), input_precision="ieee")
    down = count >= 256
    rest = count - 256 * tl.floor(count / 256)
    up = rest >= 1
    both = (up & down) | (rest > tl.floor(rest))
    total = accumulate_pv(total, weights, cleaned(rows))
    total = tl.where(up, float("inf"), tl.where(down, float("-inf"), total))
    return tl.where(both, float("nan"), total)


@device
def add_sloped_seen(total, broken, ds, rows, seen):
    """Return `add_sloped`, in which hidden rows take no part whatever they hold, and the count `broken`.

    It counts NaN and ±∞ that are seen, for each number of the sum, which becomes NaN after the last tile: a choice
    between two products keeps the compiler for compute capability 10.0 from accumulating them in tensor memory.
    """
    bad = tl.where(finite(rows), 0.0, 1.0).to(rows.dtype)
    return add_sloped(total, ds, cleaned(rows)), tl.dot(seen.to(rows.dtype), bad, broken, input_precision="ieee")
