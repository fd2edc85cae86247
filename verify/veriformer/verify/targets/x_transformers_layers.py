"""The layers of x-transformers as operations, and what it does to logits before it samples."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.targets.seeding import seeded

_library: Any = import_module("x_transformers.x_transformers")
_sampling: Any = import_module("x_transformers.autoregressive_wrapper")

_PYTORCHS = "it calls PyTorch's"
_NONE = "it has none"
_WITHIN = "a part of its wrapper's loss or generation, not a function"
NOT_PROVIDED = {
    "softmax": _PYTORCHS,
    "logsumexp": _PYTORCHS,
    "cross_entropy": _PYTORCHS,
    "perplexity": _NONE,
    "smooth_labels": _NONE,
    "temperature_scale": _WITHIN,
    "expected_calibration_error": _NONE,
    "masked_lm_loss": _WITHIN,
    "mse_loss": _NONE,
    "layer_norm": "its LayerNorm has no bias",
    "rms_norm": "its RMSNorm divides by the norm and has no epsilon under the root",
    "residual": "its Residual scales the stream, not the branch",
    "gelu": _PYTORCHS,
    "silu": _PYTORCHS,
    "mixture_of_experts": _NONE,
    "dropout": _PYTORCHS,
    "xavier_normal": _NONE,
    "lm_head": _PYTORCHS,
    **dict.fromkeys(("gradient_descent", "sgd_momentum", "adam", "adamw"), "it has no optimizers"),
    **dict.fromkeys(("warmup", "warmup_cosine", "noam"), "it has no schedules of rates"),
    "clip_grad_norm": _NONE,
    "accumulate_gradients": _NONE,
    "greedy": _WITHIN,
    "beam_search": _WITHIN,
    **dict.fromkeys(("bpe_train", "bpe_encode", "unigram_segment"), "it has no such tokenizer"),
}
CONVENTIONS = {"choice.ties": "unspecified"}  # torch.topk and torch.sort promise no order among equal entries

_ACTIVATIONS: dict[str, nn.Module] = {"relu": nn.ReLU(), "sigmoid": nn.Sigmoid(), "tanh": nn.Tanh(), "gelu": nn.GELU()}


def _mlp(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, *, activation: str) -> Tensor:
    network = _library.FeedForward(1, custom_activation=_ACTIVATIONS[activation])
    return _network(network, x, w1.T, b1, w2.T, b2)


def _network(network: nn.Module, x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """A module with these weights; they are where its first and last linear layers have theirs."""
    first, last = [name.removesuffix(".weight") for name, p in network.named_parameters() if p.ndim == 2]
    weights = {f"{first}.weight": w1, f"{first}.bias": b1, f"{last}.weight": w2, f"{last}.bias": b2}
    out: Tensor = torch.func.functional_call(network, weights, (x,))
    return out


def _feed_forward(
    x: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    *,
    activation: str,
    dropout_p: float,
    training: bool,
    generator: torch.Generator | None,
) -> Tensor:
    network = _library.FeedForward(1, custom_activation=_ACTIVATIONS[activation], dropout=float(dropout_p))
    with seeded(generator if training else None):
        return _network(network.train(training), x, w1.T, b1, w2.T, b2)


def _swiglu(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor) -> Tensor:
    """Its gated layers have biases: here zeros."""
    zeros = torch.zeros(2 * w_up.shape[1], dtype=x.dtype), torch.zeros(w_down.shape[1], dtype=x.dtype)
    network = _library.FeedForward(1, glu=True, swish=True)
    return _network(network, x, torch.cat([w_up, w_gate], 1).T, zeros[0], w_down.T, zeros[1])


def _token_embedding(ids: Tensor, weight: Tensor) -> Tensor:
    out: Tensor = torch.func.functional_call(_library.TokenEmbedding(1, 1), {"emb.weight": weight}, (ids,))
    return out


def _top_k_filter(logits: Tensor, k: int) -> Tensor:
    """Call the library's filter, which takes logits [batch, V]."""
    out: Tensor = _sampling.top_k(logits.reshape(-1, logits.shape[-1]), k=int(k))
    return out.reshape(logits.shape)


def _top_p_filter(logits: Tensor, p: float) -> Tensor:
    """Call the library's filter, which takes logits [batch, V]."""
    out: Tensor = _sampling.top_p(logits.reshape(-1, logits.shape[-1]), float(p))
    return out.reshape(logits.shape)


RAW_OPS: dict[str, Any] = {
    "mlp": _mlp,
    "feed_forward": _feed_forward,
    "swiglu": _swiglu,
    "token_embedding": _token_embedding,
    "top_k_filter": _top_k_filter,
    "top_p_filter": _top_p_filter,
}
"""By the contract's names."""
