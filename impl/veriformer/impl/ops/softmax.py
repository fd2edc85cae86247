"""Softmax: scores to probabilities."""

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.precision import accumulation_dtype


def softmax(z: Tensor, dim: int = -1) -> Tensor:
    r"""Turn scores into probabilities along one axis.

    $$p_i = e^{z_i} / \sum_j e^{z_j} = e^{z_i - m} / \sum_j e^{z_j - m}, \quad m = \max_j z_j$$

    The maximum is subtracted, so no score is too large. An entry of −∞ has probability 0 and gradient 0; a slice of
    nothing but −∞ has no value and gives NaN.

    Shapes: `z [...]` → the same. Dtypes: float64, float32, bfloat16, float16; halves are computed in float32.
    Raises `ValueError` if `dim` is not an axis of `z` or is empty, `TypeError` if `z` is not a floating-point tensor.
    Equations 1, 21 and 25; Jacobian $\mathrm{diag}(p) - p p^\top$.
    """
    dim = checks.dimension("dim", dim, checks.tensor("z", z))
    if z.shape[dim] == 0:
        checks.raise_for(
            "z", f"at least one entry along dim={dim}", f"shape {tuple(z.shape)}", "softmax of nothing has no value"
        )
    return torch.softmax(z, dim, dtype=accumulation_dtype(z.dtype)).to(z.dtype)
