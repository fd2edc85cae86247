"""Log-sum-exp: the smooth maximum, and the logarithm of softmax's denominator."""

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.precision import upcast


def logsumexp(z: Tensor, dim: int = -1) -> Tensor:
    r"""Sum exponentials along one axis and take the logarithm, without overflow.

    $$\mathrm{lse}(z) = \log \sum_j e^{z_j} = m + \log \sum_j e^{z_j - m}, \quad m = \max_j z_j$$

    Its gradient is softmax, formed as $e^{z_i - m} / \sum_j e^{z_j - m}$: through the rounded result,
    $e^{z_i - \mathrm{lse}}$, large scores would lose their digits. Over an empty axis, and where every entry is −∞,
    the result is −∞ with gradient 0.

    Shapes: `z [..., n, ...]` → `[..., ...]` without the axis `dim`. Dtypes: float64, float32, bfloat16, float16; halves
    are computed in float32. Raises `ValueError` if `dim` is not an axis of `z`, `TypeError` if `z` is not a
    floating-point tensor. Equation 12.
    """
    dim = checks.dimension("dim", dim, checks.tensor("z", z))
    x = upcast(z)
    if x.shape[dim] == 0:
        return z.sum(dim) - torch.inf
    m = x.detach().amax(dim, keepdim=True)
    m = m.masked_fill(m.isinf(), 0)  # ∞ − ∞ is NaN; without a finite maximum nothing needs to be subtracted
    total = (x - m).exp().sum(dim)
    nothing = total == 0
    lse = m.squeeze(dim) + total.masked_fill(nothing, 1).log()
    return lse.masked_fill(nothing, -torch.inf).to(z.dtype)
