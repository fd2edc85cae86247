"""PyTorch under the contract's names: ``torch.nn.functional``, ``torch.nn.utils`` and compositions of the two.

The arguments are checked first: PyTorch refuses with RuntimeError where the contract wants ValueError or
TypeError. Everything else is one call of PyTorch, but for three that no single function computes: perplexity is the
exponential of its cross entropy, the bottom-right causal mask is a triangle, and attention under a soft cap, which
``scaled_dot_product_attention`` does not take, gives it the capped scores as queries and the identity as keys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from veriformer.verify.targets import torch_heads
from veriformer.verify.targets.argument_validation import AttentionOptions, with_validation
from veriformer.verify.targets.seeding import seed_from

_COMPOSED = "PyTorch has no function for it: it is composed of several by whoever needs it"
_NO_TOKENIZER = "PyTorch has no tokenizer"
CLAIMS = {
    "dtypes": {
        # The norm is formed and returned in the dtype of the gradients (pytorch/pytorch#194033): of halves it is a
        # half, where the contract has fp32.
        "clip_grad_norm": ["fp64", "fp32"],
        # The averages have the dtype of the parameters: in fp16 squares overflow, and an ε of 1e-8 is 0.
        "adam": ["fp64", "fp32", "bf16"],
        "adamw": ["fp64", "fp32", "bf16"],
    },
    "conventions": {
        # clip_grad_norm_: clip_coef = max_norm / (total_norm + 1e-6)
        "clip_grad_norm.denominator": "norm+1e-6",
        # CrossEntropyLoss, "mean": a sum over the weights of targets that are not ignored, 0 / 0 without any
        "cross_entropy.no_target": "nan",
        # SGD: "for the first step the momentum buffer is set to the gradient", which is not damped.
        "sgd.first_velocity": "gradient",
    },
    "not_provided": {
        "smooth_labels": "PyTorch smooths within cross_entropy only",
        "temperature_scale": _COMPOSED,
        "expected_calibration_error": _COMPOSED,
        "top_k_filter": "torch.topk promises no order among equal entries",
        "top_p_filter": _COMPOSED,
        "beam_search": "PyTorch generates no text",
        "bpe_train": _NO_TOKENIZER,
        "bpe_encode": _NO_TOKENIZER,
        "unigram_segment": _NO_TOKENIZER,
        "warmup": "LinearLR starts at a factor above 0",
        "warmup_cosine": "CosineAnnealingLR rises again past its end",
        "noam": "torch.optim.lr_scheduler has no such schedule",
        "accumulate_gradients": "PyTorch accumulates in p.grad, and leaves the counting to its caller",
    },
}


def _cross_entropy(logits: Tensor, target: Tensor, ignore_index: int, label_smoothing: float, reduction: str) -> Tensor:
    """Call F.cross_entropy, with classes on axis 1, one row axis, and probabilities in the dtype of the logits."""
    rows = logits.reshape(-1, logits.shape[-1])
    if target.is_floating_point():
        y = target.to(logits.dtype).reshape(rows.shape)
        loss = F.cross_entropy(rows, y, reduction=reduction, label_smoothing=label_smoothing)
    else:
        y = target.reshape(-1)
        loss = F.cross_entropy(rows, y, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing)
    return loss.reshape(logits.shape[:-1]) if reduction == "none" else loss


def _widened(logits: Tensor) -> Tensor:
    """Widen halves, as is the custom: PyTorch sums losses in fp16, up to its range (#29429, #61523)."""
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def _perplexity(logits: Tensor, target: Tensor, ignore_index: int) -> Tensor:
    return _cross_entropy(_widened(logits), target, ignore_index, 0.0, "mean").exp().to(logits.dtype)


def _masked_lm_loss(logits: Tensor, labels: Tensor, *, ignore_index: int) -> Tensor:
    return _cross_entropy(_widened(logits), labels, ignore_index, 0.0, "mean").to(logits.dtype)


def _greedy(logits: Tensor) -> Tensor:
    """Return argmax: of several maximal values torch.argmax returns the first, as its documentation says."""
    return torch.argmax(logits, -1)


def _layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def _rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    return F.rms_norm(x, x.shape[-1:], weight, eps)


def _clip_grad_norm(grads: list[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    """Clip the ``grad`` of parameters made for the purpose: clip_grad_norm_ works on these, in place."""
    parameters = [torch.nn.Parameter(torch.empty_like(g)) for g in grads]
    for parameter, g in zip(parameters, grads, strict=True):
        parameter.grad = g.detach().clone()
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    return [parameter.grad for parameter in parameters if parameter.grad is not None], norm


def _causal_mask(n_q: int, n_k: int, window: int | None) -> Tensor:
    """Return the mask aligned to the bottom right, ``causal_lower_right``; ``is_causal`` is aligned to the top left."""
    seen = torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)
    return seen if window is None else seen.triu(n_k - n_q - window + 1)


def scaled_dot_product(q: Tensor, k: Tensor, v: Tensor, o: AttentionOptions) -> Tensor:
    """Call PyTorch's SDPA; with ``is_causal`` where both alignments agree, but for scale ≤ 0 (NaN in PyTorch 2.13,
    CPU).
    """
    rate = o.dropout_p if o.training else 0.0
    plain = q.shape[2] == k.shape[2] and o.window is None and o.mask is None and o.bias is None
    q, k, scale = (q, k, o.scale) if o.softcap is None else (*_capped_scores(q, k, o, o.softcap), 1.0)
    causal = o.is_causal and plain and (scale is None or scale > 0)
    mask = None if causal else attention_mask(q, k, o)
    with seed_from(o.generator if rate else None):
        return F.scaled_dot_product_attention(
            q, k, v, mask, rate, is_causal=causal, scale=scale, enable_gqa=q.shape[1] != k.shape[1]
        )


def attention_mask(q: Tensor, k: Tensor, o: AttentionOptions) -> Tensor | None:
    """Combine masks into one bool mask, or into −∞ in the bias; None where every query sees every key without bias."""
    see = o.mask
    if o.is_causal:
        order = _causal_mask(q.shape[2], k.shape[2], o.window).to(q.device)
        see = order if see is None else see & order
    if o.bias is None:
        return see
    bias = o.bias.to(q.dtype)
    return bias if see is None else torch.where(see, bias, -torch.inf)


def _capped_scores(q: Tensor, k: Tensor, o: AttentionOptions, c: float) -> tuple[Tensor, Tensor]:
    """Return queries and keys whose products are the capped scores: the scores themselves, and the identity."""
    scale = 1 / math.sqrt(q.shape[-1]) if o.scale is None else o.scale
    s = q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).mT * scale
    n_k = k.shape[2]
    identity = torch.eye(n_k, dtype=q.dtype, device=q.device).expand(*k.shape[:3], n_k)
    return c * torch.tanh(s / c), identity


def _mse_loss(prediction: Tensor, target: Tensor) -> Tensor:
    """Return the mean over vectors of the squared distance; PyTorch's mean is over entries."""
    return F.mse_loss(prediction, target, reduction="none").sum(-1).mean()


def _dropout(x: Tensor, p: float, training: bool, generator: torch.Generator | None) -> Tensor:
    with seed_from(generator if training else None):
        return F.dropout(x, float(p), training)


def _xavier_normal(n_in: int, n_out: int, generator: torch.Generator | None) -> Tensor:
    return torch.nn.init.xavier_normal_(torch.empty(n_in, n_out), generator=generator)


def _token_embedding(ids: Tensor, weight: Tensor) -> Tensor:
    """Look up ids, as int64 where they are neither int32 nor int64, which PyTorch takes."""
    return F.embedding(ids if ids.dtype in (torch.int32, torch.int64) else ids.long(), weight)


def _gradient_descent(params: Sequence[Tensor], lr: float) -> Any:
    return torch.optim.SGD(params, lr, foreach=True)


def _sgd_momentum(params: Sequence[Tensor], lr: float, *, beta: float) -> Any:
    """Return torch.optim.SGD with ``dampening`` β: the share of each gradient but the first that is left out."""
    return torch.optim.SGD(params, lr, momentum=beta, dampening=beta, foreach=True)


def _adam(params: Sequence[Tensor], lr: float, **options: Any) -> Any:
    return torch.optim.Adam(params, lr, foreach=True, **options)


def _adamw(params: Sequence[Tensor], lr: float, **options: Any) -> Any:
    return torch.optim.AdamW(params, lr, foreach=True, **options)


TARGET = with_validation(
    CLAIMS,
    softmax=F.softmax,
    logsumexp=torch.logsumexp,
    cross_entropy=_cross_entropy,
    perplexity=_perplexity,
    layer_norm=_layer_norm,
    rms_norm=_rms_norm,
    clip_grad_norm=_clip_grad_norm,
    causal_mask=_causal_mask,
    attention=scaled_dot_product,
    masked_lm_loss=_masked_lm_loss,
    greedy=_greedy,
    mse_loss=_mse_loss,
    gelu=F.gelu,
    silu=F.silu,
    dropout=_dropout,
    xavier_normal=_xavier_normal,
    token_embedding=_token_embedding,
    lm_head=F.linear,
    gradient_descent=_gradient_descent,
    sgd_momentum=_sgd_momentum,
    adam=_adam,
    adamw=_adamw,
    **torch_heads.RAW_OPS,
)
"""The implementation; its version is PyTorch's."""

TARGET.__name__ = "torch"
