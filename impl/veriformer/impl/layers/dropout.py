"""Dropout: entries become zero by chance, and the others grow to make up for it."""

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.attention_backends.dropout import dropout_scale, keep_mask


def dropout(x: Tensor, p: float, *, training: bool = True, generator: torch.Generator | None = None) -> Tensor:
    r"""Zero each entry with probability `p`, independently, and divide the others by $1 - p$.

    $$y = m \odot x / (1 - p), \quad m_i \sim \mathrm{Bernoulli}(1 - p), \quad \mathrm{E}\, y = x$$

    The gradient goes through the same mask. With `p = 1` everything is zero; when not `training`, or with `p = 0`, the
    result is `x`. `generator` draws the mask (None is PyTorch's global one): equal states give equal masks for equal
    shapes, in every dtype.

    Shapes: `x [...]` → the same. Dtypes: float64, float32, bfloat16, float16. Raises `ValueError` for `p` outside
    [0, 1], also when not training, and `TypeError` for wrong types. Equations 46 and 47.
    """
    checks.tensor("x", x)
    p = checks.probability("p", p)
    generator = checks.generator("generator", generator, x.device)
    return drop(x, p if checks.flag("training", training) else 0.0, generator)


def drop(x: Tensor, p: float, generator: torch.Generator | None) -> Tensor:
    """Drop entries of `x` with probability `p`; of the forward pass only the mask is kept."""
    if p == 0:
        return x
    keep = keep_mask(tuple(x.shape), p, generator, x.device)
    return x.masked_fill(~keep, 0) * dropout_scale(p)
