"""Clipping: a gradient that is too long keeps its direction and loses its length."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from veriformer.impl import checks


def clip_grad_norm(grads: Iterable[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    r"""Shorten a list of gradients together, to norm `max_norm` at most.

    $$\tilde g = g \cdot \min\big(1, c / \lVert g \rVert\big), \quad \lVert g \rVert^2 = \sum_t \lVert g_t \rVert^2$$

    There is no ε in the denominator, and gradients inside the ball are returned bit for bit. The norm is that of the
    gradients scaled by a power of two near their largest entry, so no square overflows or vanishes; the same power is
    taken out of the factor, which may be far below the smallest number of the dtype.

    Shapes: any; the list keeps its shapes and dtypes. Returns the clipped list and the norm before clipping, 0-d,
    float64 if any gradient is, float32 otherwise; of an empty list it is 0. Raises `TypeError` if an entry is not a
    floating-point tensor (`None` among them), `ValueError` if `max_norm` is negative or NaN. Equation 11.
    """
    c = checks.nonnegative("max_norm", max_norm)
    if isinstance(grads, Tensor) or not isinstance(grads, Iterable):
        checks.raise_for("grads", "a list of tensors", type(grads).__name__, "put tensors into a list", TypeError)
    grads = [checks.tensor(f"grads[{index}]", g) for index, g in enumerate(grads)]
    if not grads:
        return [], torch.zeros(())
    wide = _widened(grads)
    r, e = _scaled_norm(wide)
    norm = r * e.exp2()
    if math.isinf(c):
        return grads, norm
    inside = norm <= c
    near, far = (factor.masked_fill(inside, 1) for factor in _factor(c, r, e))  # and a product with 1 keeps all bits
    if wide[0].is_cpu:
        clipped = [(x * near * far).to(g.dtype) for x, g in zip(wide, grads, strict=True)]
    else:
        products = torch._foreach_mul(torch._foreach_mul(wide, near), far)
        clipped = [x.to(g.dtype) for x, g in zip(products, grads, strict=True)]
    return clipped, norm


def _widened(grads: list[Tensor]) -> list[Tensor]:
    doubles = any(g.dtype == torch.float64 for g in grads)
    return [g.to(torch.float64 if doubles else torch.float32) for g in grads]


def _scaled_norm(grads: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Return `r` and an integer `e` with ‖g‖ = r · 2^e, where `r` is of ordinary size."""
    filled = [g.detach() for g in grads if g.numel()] or [grads[0].new_zeros(1)]
    one_by_one = grads[0].is_cpu  # whose memory is used again; elsewhere all go by one kernel
    largest = torch.stack(
        [g.abs().amax() for g in filled] if one_by_one else list(torch._foreach_norm(filled, math.inf))
    ).amax()
    limit = _exponent_range(largest.dtype)
    e = torch.frexp(largest).exponent.clamp(-limit, limit).to(largest.dtype)  # 2^e and 2^−e are both normal numbers
    factor = (-e).exp2()
    if one_by_one:
        sums = [(g * factor).square().sum() for g in grads]
    else:
        scaled = torch._foreach_mul(grads, factor)
        sums = [x.sum() for x in torch._foreach_mul(scaled, scaled)]
    squares = torch.stack(sums).sum()
    zero = squares == 0  # the square root has no derivative there
    return squares.masked_fill(zero, 1).sqrt().masked_fill(zero, 0), e


def _factor(c: float, r: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
    """Split c / (r · 2^e) into two factors that keep all their digits where their product would underflow."""
    f, k = math.frexp(c)
    limit = _exponent_range(r.dtype) - 16  # f / r stays above 2^−16 up to 2^30 entries
    s = k - e
    near = s.clamp(-limit, limit)
    return f / r.masked_fill(r == 0, 1) * near.exp2(), (s - near).exp2()


def _exponent_range(dtype: torch.dtype) -> int:
    return -math.frexp(torch.finfo(dtype).tiny)[1]
