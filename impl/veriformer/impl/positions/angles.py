"""The angles of sinusoidal encodings and of RoPE: position times frequency."""

import math

import torch
from torch import Tensor

Scaling = tuple[str, float] | None


def frequencies(d: int, base: float, scaling: Scaling = None, device: torch.device | None = None) -> Tensor:
    r"""Return $\theta_i = \mathrm{base}^{-2i/d}$ for the pairs of d features, `[⌈d / 2⌉]`, in float64 on the device.

    `("linear", s)` divides them by $s$; `("ntk", s)` takes $\mathrm{base} \cdot s^{d/(d-2)}$ for the base, so that the
    slowest is divided by $s$ and the fastest stays.
    """
    kind, s = scaling or ("linear", 1.0)
    exponent = torch.arange(0, d, 2, dtype=torch.float64, device=device) / -max(d, 1)
    if kind == "ntk":
        return torch.exp(exponent * (math.log(base) + d / max(d - 2, 1) * math.log(s)))
    return torch.exp(exponent * math.log(base)) / s


def cosines_and_sines(positions: Tensor, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Return cos and sin of every position × frequency, `[..., ⌈d / 2⌉]` in float64.

    At position 1e5 an angle in float32 is off by 0.004, in bfloat16 by whole turns: angles are never formed in the
    dtype of the features. `theta` is where the positions are: a copy from the host would make it wait for the device.
    """
    angles = positions.detach()[..., None] * theta  # float64, as theta is
    return angles.cos(), angles.sin()
