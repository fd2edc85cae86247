"""RoPE: features are turned by angles that grow with their position."""

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.positions.angles import Scaling, cosines_and_sines, frequencies
from veriformer.impl.precision import accumulation_dtype, upcast


def rope(
    x: Tensor, positions: Tensor, *, base: float = 10000.0, pairing: str = "interleaved", scaling: Scaling = None
) -> Tensor:
    r"""Turn each pair of features at position $m$ by the angle $m\, \theta_i$.

    $$\begin{pmatrix} a \\ b \end{pmatrix} \mapsto \begin{pmatrix} \cos m\theta_i & -\sin m\theta_i \\
      \sin m\theta_i & \cos m\theta_i \end{pmatrix} \begin{pmatrix} a \\ b \end{pmatrix}, \quad
      \theta_i = \mathrm{base}^{-2i/d}$$

    so that the product of a turned query and a turned key depends on the difference of their positions alone. Pair $i$
    is $(x_{2i}, x_{2i+1})$ if `pairing="interleaved"`, and $(x_i, x_{i+d/2})$ if `"half"`. `scaling=("linear", s)`
    divides positions by $s$, `("ntk", s)` uses the base $\mathrm{base} \cdot s^{d/(d-2)}$.

    Shapes: `x [..., n, d]`; `positions [n]`, or all axes of `x` but the last, each full or 1; → the shape of `x`.
    Positions are integers or floating-point numbers, of any sign and in any order, and have no gradient. Dtypes:
    float64, float32, bfloat16, float16; angles are formed in float64, and halves are turned in float32. Raises
    `ValueError` for odd `d`, other shapes, `base` or `s` not above 0 and unknown names, `TypeError` for wrong types.
    Equations 30 and 31.
    """
    _check_shapes(x, positions)
    theta = frequencies(x.shape[-1], checks.positive("base", base), _check_scaling(scaling), positions.device)
    checks.choice("pairing", pairing, ("interleaved", "half"))
    cos, sin = (t.to(accumulation_dtype(x.dtype)) for t in cosines_and_sines(positions, theta))
    return rotate(x, cos, sin, pairing)


def rotate(x: Tensor, cos: Tensor, sin: Tensor, pairing: str) -> Tensor:
    """Turn the pairs of `x [..., d]` by angles whose cosines and sines are `[..., d / 2]`."""
    wide = upcast(x)
    if pairing == "half":
        a, b = wide.chunk(2, -1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1).to(x.dtype)
    a, b = wide[..., 0::2], wide[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2).to(x.dtype)


def _check_shapes(x: Tensor, positions: Tensor) -> None:
    if checks.tensor("x", x).ndim < 2 or x.shape[-1] % 2:
        got = f"shape {tuple(x.shape)}"
        checks.raise_for("x", "shape [..., n, d] with even d", got, "features are turned in pairs")
    if not isinstance(positions, Tensor) or positions.dtype == torch.bool or positions.is_complex():
        kind = positions.dtype if isinstance(positions, Tensor) else type(positions).__name__
        checks.raise_for("positions", "a tensor of numbers", kind, "use torch.arange(n)", TypeError)
    n, rows = x.shape[-2], x.shape[:-1]
    fits = positions.shape == (n,) or (
        positions.ndim == len(rows) and all(have in (1, full) for have, full in zip(positions.shape, rows, strict=True))
    )
    if not fits:
        expected = f"shape ({n},), or {len(rows)} axes, each 1 or that of {tuple(rows)}"
        checks.raise_for("positions", expected, f"shape {tuple(positions.shape)}", "insert axes of size 1")
    if positions.device != x.device:
        checks.raise_for(
            "positions", f"device {x.device}, where x lives", positions.device, "move one of the two first"
        )


def _check_scaling(scaling: object) -> Scaling:
    if scaling is None:
        return None
    if not isinstance(scaling, tuple | list) or len(scaling) != 2:
        checks.raise_for("scaling", "None or a pair (kind, s)", repr(scaling), 'such as ("linear", 2.0)')
    kind, s = scaling
    return checks.choice("scaling", kind, ("linear", "ntk")), checks.positive("scaling", s)
