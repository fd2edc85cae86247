"""Activations: GELU in both forms, SiLU, and the names by which networks ask for one."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from veriformer.impl import checks


def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    r"""Pass each number on by the chance that a normal variable is below it.

    $$\mathrm{GELU}(x) = x\, \Phi(x) = \tfrac{x}{2} \left(1 + \mathrm{erf}(x / \sqrt 2)\right)$$

    With `approximate="tanh"` $\tfrac{x}{2} \left(1 + \tanh\big(\sqrt{2/\pi}\, (x + 0.044715\, x^3)\big)\right)$,
    which is off by up to 4.8e-4 and no faster today: for weights that were trained with it.

    Shapes: `x [...]` → the same. Dtypes: float64, float32, bfloat16, float16; halves are computed in float32.
    Raises `ValueError` for another `approximate`, `TypeError` if `x` is not a floating-point tensor. Equation 37.
    """
    return F.gelu(checks.tensor("x", x), approximate=checks.choice("approximate", approximate, ("none", "tanh")))


def silu(x: Tensor) -> Tensor:
    r"""Multiply each number by its own sigmoid.

    $$\mathrm{SiLU}(x) = x\, \sigma(x) = x / (1 + e^{-x})$$

    Shapes: `x [...]` → the same. Dtypes: float64, float32, bfloat16, float16; halves are computed in float32.
    Raises `TypeError` if `x` is not a floating-point tensor. Document 003, section 11.
    """
    return F.silu(checks.tensor("x", x))


ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "gelu": F.gelu,
}
"""Activation functions by the value of `activation`, wherever an operation takes it."""
