"""Layers: networks, norms, activations, embeddings and a whole block."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


def mse_loss(prediction: Tensor, target: Tensor) -> Tensor:
    """The mean over samples of the squared norm of their error."""


def mlp(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, *, activation: str = "relu") -> Tensor:
    """Two layers with relu, sigmoid, tanh or gelu between them (13, 14, 15, 16, 17, 18)."""


def layer_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, eps: float = 1e-5) -> Tensor:
    """The last axis at mean 0 and variance 1, then scaled and shifted (19)."""


def rms_norm(x: Tensor, weight: Tensor | None = None, *, eps: float = 1e-6) -> Tensor:
    """The last axis divided by its root mean square, then scaled."""


def residual(x: Tensor, fx: Tensor, *, scale: float = 1.0) -> Tensor:
    """What a layer was given, plus what it says of it (4)."""


def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    """Each number times the chance that a normal variable is below it; "tanh" approximates it (37)."""


def silu(x: Tensor) -> Tensor:
    """Each number times its own sigmoid."""


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
    """Two layers applied to each position by itself, with dropout of the hidden values (36, 47)."""


def swiglu(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor) -> Tensor:
    """One projection opened and closed by another, (silu(x @ w_gate) * (x @ w_up)) @ w_down."""


def mixture_of_experts(
    x: Tensor, router: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, *, top_k: int = 2
) -> Tensor:
    """Each token's top_k best experts, on the weights' first axis, added by gates renormalised over the chosen."""


def dropout(x: Tensor, p: float, *, training: bool = True, generator: torch.Generator | None = None) -> Tensor:
    """Each entry zero with probability p, independently, and the others divided by 1 − p (46, 47)."""


def xavier_normal(n_in: int, n_out: int, *, generator: torch.Generator | None = None) -> Tensor:
    """The first weights of a layer, [n_in, n_out], drawn from a normal distribution (49)."""


def token_embedding(ids: Tensor, weight: Tensor) -> Tensor:
    """The vector of each token (39)."""


def lm_head(h: Tensor, weight: Tensor) -> Tensor:
    """The score of every token of the vocabulary, h @ weight.T (40)."""


def transformer_block(
    x: Tensor,
    params: Mapping[str, Tensor],
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    norm: str = "pre",
    activation: str = "gelu",
    is_causal: bool = False,
    attention_mask: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Attention and a feed-forward network, each added to what it reads, with norms before or after (32, 33, 34, 35).

    params: tensors by the names w_q, w_k, w_v, w_o, w1, b1, w2, b2, norm1_weight, norm1_bias, norm2_weight, norm2_bias.
    """
