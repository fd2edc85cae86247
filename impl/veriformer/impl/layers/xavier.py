"""Xavier initialization of weights."""

import math

import torch
from torch import Tensor

from veriformer.impl import checks


def xavier_normal(n_in: int, n_out: int, *, generator: torch.Generator | None = None) -> Tensor:
    r"""Draw the first weights of a layer from a normal distribution, after Glorot and Bengio.

    $$W_{ij} \sim \mathcal N\!\left(0, \frac{2}{n_{\mathrm{in}} + n_{\mathrm{out}}}\right) \text{, independently}$$

    a compromise between the variance that keeps the size of features and the one that keeps that of gradients.
    `generator` draws (None is PyTorch's global one).

    Shape: `[n_in, n_out]`. Dtype: `torch.get_default_dtype()`, on the CPU. Raises `ValueError` for negative sizes,
    `TypeError` for what is no integer. Equation 49.
    """
    n_in, n_out = (checks.integer(name, n, minimum=0) for name, n in (("n_in", n_in), ("n_out", n_out)))
    cpu = torch.device("cpu")
    w = torch.randn(n_in, n_out, generator=checks.generator("generator", generator, cpu), device=cpu)
    return w * math.sqrt(2 / max(n_in + n_out, 1))
