"""Layers: networks, norms, activations, embeddings and a whole block."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


def mse_loss(prediction: Tensor, target: Tensor) -> Tensor:
    """Mean over samples of ‖prediction − target‖²."""


def mlp(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, *, activation: str = "relu") -> Tensor:
    """Two-layer perceptron: f(x W1 + b1) W2 + b2 with f relu, sigmoid, tanh or gelu (13, 14, 15, 16, 17, 18)."""


def layer_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, eps: float = 1e-5) -> Tensor:
    """LayerNorm over the last axis: γ ⊙ (x − mean(x)) / √(var(x) + ε) + β (19)."""


def rms_norm(x: Tensor, weight: Tensor | None = None, *, eps: float = 1e-6) -> Tensor:
    """RMSNorm over the last axis: γ ⊙ x / √(mean(x²) + ε)."""


def residual(x: Tensor, fx: Tensor, *, scale: float = 1.0) -> Tensor:
    """Residual connection: x + scale · fx (4)."""


def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    """GELU: x · Φ(x), or its tanh approximation (37)."""


def silu(x: Tensor) -> Tensor:
    """SiLU: x · σ(x)."""


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
    """Position-wise feed-forward network with dropout of the hidden activations (36, 47)."""


def swiglu(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor) -> Tensor:
    """SwiGLU: (silu(x W_gate) ⊙ x W_up) W_down."""


def mixture_of_experts(
    x: Tensor, router: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, *, top_k: int = 2
) -> Tensor:
    """Mixture of the top_k experts (first axis of the weights) of each token, by gates renormalised over them."""


def dropout(x: Tensor, p: float, *, training: bool = True, generator: torch.Generator | None = None) -> Tensor:
    """Inverted dropout: each entry 0 with probability p, independently, and the others divided by 1 − p (46, 47)."""


def xavier_normal(n_in: int, n_out: int, *, generator: torch.Generator | None = None) -> Tensor:
    """Xavier initialisation: [n_in, n_out] drawn from N(0, 2 / (n_in + n_out)) (49)."""


def token_embedding(ids: Tensor, weight: Tensor) -> Tensor:
    """Embedding lookup: weight[ids] (39)."""


def lm_head(h: Tensor, weight: Tensor) -> Tensor:
    """Vocabulary logits: h Wᵀ (40)."""


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
    """Transformer block: attention and feed-forward network, each with a residual and a norm (32, 33, 34, 35).

    params: tensors by the names w_q, w_k, w_v, w_o, w1, b1, w2, b2, norm1_weight, norm1_bias, norm2_weight, norm2_bias.
    """
