"""Two linear layers with an activation between them: the MLP, and the feed-forward network of a Transformer."""

from collections.abc import Callable

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.layers.activations import ACTIVATIONS
from veriformer.impl.layers.dropout import drop
from veriformer.impl.linear import linear
from veriformer.impl.precision import upcast_half
from veriformer.impl.shapes import match_shapes

_SHAPES = {"x": "... d", "w1": "d f", "b1": "f", "w2": "f o", "b2": "o"}


def mlp(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, *, activation: str = "relu") -> Tensor:
    r"""Compute a network of two layers, each row of `x` by itself.

    $$y = \sigma(x W_1 + b_1)\, W_2 + b_2$$

    with $\sigma$ one of `relu`, `sigmoid`, `tanh`, `gelu` (the exact one). Its gradients are those of equations 16 to
    18: $dW_2 = h^\top g$, $dW_1 = x^\top [(g W_2^\top) \odot \sigma'(z)]$, biases the sums over all rows.

    Shapes: `x [..., d]`, `w1 [d, f]`, `b1 [f]`, `w2 [f, o]`, `b2 [o]` → `[..., o]`. Dtypes: float64, float32, bfloat16,
    float16, all the same; sums and hidden values have the range of float32. Raises `ValueError` for shapes that do not
    match and unknown activations, `TypeError` for wrong or mixed dtypes. Equations 13 to 18.
    """
    match_shapes(_SHAPES, x=x, w1=w1, b1=b1, w2=w2, b2=b2)
    return _by_name(x, w1, b1, w2, b2, activation, 0.0, None)


def feed_forward(
    x: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    *,
    activation: str = "gelu",
    dropout_p: float = 0.0,
    training: bool = False,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Compute a feed-forward network, each position by itself, with dropout of its hidden values.

    $$y = \mathrm{dropout}\big(\sigma(x W_1 + b_1)\big)\, W_2 + b_2$$

    with $\sigma$ one of `relu`, `sigmoid`, `tanh`, `gelu` (the exact one). Hidden values are dropped only when
    `training`, with a mask that `generator` draws (None is PyTorch's global one).

    Shapes: `x [..., d]`, `w1 [d, f]`, `b1 [f]`, `w2 [f, o]`, `b2 [o]` → `[..., o]`. Dtypes: float64, float32, bfloat16,
    float16, all the same; sums and hidden values have the range of float32. Raises `ValueError` for shapes that do not
    match, unknown activations and `dropout_p` outside [0, 1], `TypeError` for wrong types. Equations 36 and 47.
    """
    match_shapes(_SHAPES, x=x, w1=w1, b1=b1, w2=w2, b2=b2)
    p = checks.probability("dropout_p", dropout_p)
    generator = checks.generator("generator", generator, x.device)
    p = p if checks.flag("training", training) else 0.0
    return _by_name(x, w1, b1, w2, b2, activation, p, generator)


def _by_name(
    x: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    activation: str,
    p: float,
    generator: torch.Generator | None,
) -> Tensor:
    sigma = ACTIVATIONS[checks.choice("activation", activation, ACTIVATIONS)]
    x_, w1, b1, w2, b2 = (upcast_half(t) for t in (x, w1, b1, w2, b2))
    return network(x_, w1, b1, w2, b2, sigma, p, generator).to(x.dtype)


def network(
    x: Tensor,
    w1: Tensor,
    b1: Tensor | None,
    w2: Tensor,
    b2: Tensor | None,
    sigma: Callable[[Tensor], Tensor],
    p: float = 0.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Return `dropout(σ(x w1 + b1)) w2 + b2`, `[..., o]`, of arguments that are known to fit."""
    h = sigma(linear(x, w1, b1))  # [..., f]
    return linear(drop(h, p, generator) if p else h, w2, b2)
