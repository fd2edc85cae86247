"""PyTorch's own functions under the contract's names, as a program calls them: no checks before, nothing after."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

softmax, logsumexp = F.softmax, partial(torch.logsumexp, dim=-1)
cross_entropy, mse_loss = F.cross_entropy, F.mse_loss
silu, gelu, dropout = F.silu, F.gelu, partial(F.dropout, training=True)
token_embedding, lm_head = F.embedding, F.linear
gradient_descent, sgd_momentum = torch.optim.SGD, partial(torch.optim.SGD, momentum=0.9)
adam, adamw = torch.optim.Adam, torch.optim.AdamW
greedy = partial(torch.argmax, dim=-1)


def perplexity(logits: Tensor, target: Tensor) -> Tensor:
    """Return the exponential of the cross-entropy."""
    return F.cross_entropy(logits, target).exp()


def temperature_scale(logits: Tensor, temperature: float) -> Tensor:
    """Return `softmax` of the quotient."""
    return F.softmax(logits / temperature, -1)


def layer_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, eps: float = 1e-5) -> Tensor:
    """Call `layer_norm` over the last axis."""
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def rms_norm(x: Tensor, weight: Tensor | None = None, *, eps: float = 1e-6) -> Tensor:
    """Call `rms_norm` over the last axis."""
    return F.rms_norm(x, x.shape[-1:], weight, eps)


def mlp(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """Call two `linear` with `relu` between."""
    return F.linear(F.relu(F.linear(x, w1.mT, b1)), w2.mT, b2)


def feed_forward(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """Call two `linear` with `gelu` between."""
    return F.linear(F.gelu(F.linear(x, w1.mT, b1)), w2.mT, b2)


def xavier_normal(n_in: int, n_out: int) -> Tensor:
    """Draw a matrix by `torch.nn.init.xavier_normal_`."""
    return torch.nn.init.xavier_normal_(torch.empty(n_in, n_out))


def attention(q: Tensor, k: Tensor, v: Tensor, *, is_causal: bool = False) -> Tensor:
    """Call `scaled_dot_product_attention`."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal, enable_gqa=q.shape[1] != k.shape[1])


def causal_mask(n_q: int, n_k: int) -> Tensor:
    """Return `tril` of ones."""
    return torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)


def multi_head_attention(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, *, num_heads: int) -> Tensor:
    """Project before and after `scaled_dot_product_attention`."""
    q, k, v = ((x @ w).view(*x.shape[:-1], num_heads, -1).transpose(1, 2) for w in (w_q, w_k, w_v))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2) @ w_o


def top_k_filter(logits: Tensor, k: int) -> Tensor:
    """Hide all but what `topk` finds."""
    values, places = logits.topk(k)
    return torch.full_like(logits, -torch.inf).scatter(-1, places, values)
