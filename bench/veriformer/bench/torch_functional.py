"""PyTorch's own functions under the contract's names, as a program calls them: no checks before, nothing after."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

softmax = F.softmax
mse_loss = F.mse_loss
silu = F.silu
gelu = F.gelu


def logsumexp(z: Tensor, dim: int = -1) -> Tensor:
    """`torch.logsumexp`."""
    return torch.logsumexp(z, dim)


def cross_entropy(logits: Tensor, target: Tensor, **options: Any) -> Tensor:
    """`torch.nn.functional.cross_entropy`."""
    return F.cross_entropy(logits, target, **options)


def perplexity(logits: Tensor, target: Tensor) -> Tensor:
    """Return the exponential of the cross-entropy."""
    return F.cross_entropy(logits, target).exp()


def temperature_scale(logits: Tensor, temperature: float) -> Tensor:
    """`softmax` of the quotient."""
    return F.softmax(logits / temperature, -1)


def layer_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, eps: float = 1e-5) -> Tensor:
    """`torch.nn.functional.layer_norm`."""
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def rms_norm(x: Tensor, weight: Tensor | None = None, *, eps: float = 1e-6) -> Tensor:
    """`torch.nn.functional.rms_norm`."""
    return F.rms_norm(x, x.shape[-1:], weight, eps)


def mlp(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """Two `linear` with `relu` between."""
    return F.linear(F.relu(F.linear(x, w1.mT, b1)), w2.mT, b2)


def feed_forward(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """Two `linear` with `gelu` between."""
    return F.linear(F.gelu(F.linear(x, w1.mT, b1)), w2.mT, b2)


def dropout(x: Tensor, p: float) -> Tensor:
    """`torch.nn.functional.dropout`."""
    return F.dropout(x, p, training=True)


def xavier_normal(n_in: int, n_out: int) -> Tensor:
    """`torch.nn.init.xavier_normal_`."""
    return torch.nn.init.xavier_normal_(torch.empty(n_in, n_out))


def token_embedding(ids: Tensor, weight: Tensor) -> Tensor:
    """`torch.nn.functional.embedding`."""
    return F.embedding(ids, weight)


def lm_head(h: Tensor, weight: Tensor) -> Tensor:
    """`torch.nn.functional.linear`."""
    return F.linear(h, weight)


def attention(q: Tensor, k: Tensor, v: Tensor, *, is_causal: bool = False) -> Tensor:
    """`torch.nn.functional.scaled_dot_product_attention`."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal, enable_gqa=q.shape[1] != k.shape[1])


def causal_mask(n_q: int, n_k: int) -> Tensor:
    """`tril` of ones."""
    return torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)


def multi_head_attention(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, *, num_heads: int) -> Tensor:
    """Projections around `scaled_dot_product_attention`."""
    q, k, v = ((x @ w).view(*x.shape[:-1], num_heads, -1).transpose(1, 2) for w in (w_q, w_k, w_v))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2) @ w_o


def gradient_descent(params: Iterable[Tensor], lr: float) -> torch.optim.Optimizer:
    """`torch.optim.SGD`."""
    return torch.optim.SGD(params, lr)


def sgd_momentum(params: Iterable[Tensor], lr: float) -> torch.optim.Optimizer:
    """`torch.optim.SGD` with momentum."""
    return torch.optim.SGD(params, lr, momentum=0.9)


def adam(params: Iterable[Tensor], lr: float) -> torch.optim.Optimizer:
    """`torch.optim.Adam`."""
    return torch.optim.Adam(params, lr)


def adamw(params: Iterable[Tensor], lr: float) -> torch.optim.Optimizer:
    """`torch.optim.AdamW`."""
    return torch.optim.AdamW(params, lr)


def top_k_filter(logits: Tensor, k: int) -> Tensor:
    """Return all but what `topk` finds hidden."""
    values, places = logits.topk(k)
    return torch.full_like(logits, -torch.inf).scatter(-1, places, values)


def greedy(logits: Tensor) -> Tensor:
    """`argmax`."""
    return logits.argmax(-1)
