"""SwiGLU: a feed-forward network with a gate."""

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional as F

from veriformer.impl.linear import linear
from veriformer.impl.precision import upcast_half
from veriformer.impl.shapes import match_shapes


def swiglu(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor) -> Tensor:
    r"""Let one projection of `x` open and close another.

    $$y = \big(\mathrm{SiLU}(x W_{\mathrm{gate}}) \odot x W_{\mathrm{up}}\big)\, W_{\mathrm{down}}$$

    Shapes: `x [..., d]`, `w_gate [d, f]`, `w_up [d, f]`, `w_down [f, o]` → `[..., o]`. Dtypes: float64, float32,
    bfloat16, float16, all the same; hidden values have the range of float32. Raises `ValueError` for shapes that do not
    match, `TypeError` for wrong or mixed dtypes. Document 003, section 11.
    """
    shapes = {"x": "... d", "w_gate": "d f", "w_up": "d f", "w_down": "f o"}
    match_shapes(shapes, x=x, w_gate=w_gate, w_up=w_up, w_down=w_down)
    x_, w_gate, w_up, w_down = (upcast_half(t) for t in (x, w_gate, w_up, w_down))
    gate, up = linear(x_, w_gate), linear(x_, w_up)  # [..., f]
    return gated_network(gate, up, w_down, None, F.silu).to(x.dtype)


def gated_network(
    gate: Tensor, up: Tensor, w_down: Tensor, b_down: Tensor | None, sigma: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return `(σ(gate) ⊙ up) w_down + b_down`, `[..., o]`, of two projections `[..., f]`."""
    return linear(sigma(gate) * up, w_down, b_down)
