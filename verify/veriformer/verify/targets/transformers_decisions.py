"""From scores to text as transformers has it: its losses, what it does to logits before sampling, and its schedules."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

_loss: Any = import_module("transformers.loss.loss_utils")
_logits: Any = import_module("transformers.generation.logits_process")
_optimization: Any = import_module("transformers.optimization")

DTYPES = {name: ["fp32", "bf16", "fp16"] for name in ("masked_lm_loss", "perplexity")}  # its losses are fp32
CONVENTIONS = {
    # Means are PyTorch's, 0 / 0 without any target.
    "cross_entropy.no_target": "nan",
    # Top-k keeps all that equal the last; top-p, and the router of experts, leave ties to torch.sort and torch.topk.
    "choice.ties": "unspecified",
}

_PYTORCHS = "it calls PyTorch's"
_TRAINERS = "a part of its Trainer's loop, not a function"
_TOKENIZERS = "its tokenizers split into words first, and are those of the tokenizers library"
NOT_PROVIDED = {
    "softmax": _PYTORCHS,
    "logsumexp": _PYTORCHS,
    "cross_entropy": "its losses are means or sums over classes that are given, without smoothing in the same function",
    "smooth_labels": "LabelSmoother smooths within a loss only",
    "expected_calibration_error": "it has none",
    "greedy": _PYTORCHS,
    "beam_search": "a part of generate, which takes a model and not a function",
    "bpe_train": _TOKENIZERS,
    "bpe_encode": _TOKENIZERS,
    "unigram_segment": _TOKENIZERS,
    "gradient_descent": _PYTORCHS,
    "sgd_momentum": _PYTORCHS,
    "adam": _PYTORCHS,
    "adamw": _PYTORCHS,
    "clip_grad_norm": _TRAINERS,
    "accumulate_gradients": _TRAINERS,
}


def _masked_lm_loss(logits: Tensor, labels: Tensor, *, ignore_index: int) -> Tensor:
    loss: Tensor = _loss.ForMaskedLMLoss(logits, labels, logits.shape[-1], ignore_index=ignore_index)
    return loss.to(logits.dtype)


def _perplexity(logits: Tensor, target: Tensor, ignore_index: int) -> Tensor:
    """The exponential of the causal loss, as its documentation has it; labels that are shifted already say so."""
    loss: Tensor = _loss.ForCausalLMLoss(
        logits, target, logits.shape[-1], ignore_index=ignore_index, shift_labels=target
    )
    return loss.exp().to(logits.dtype)


def _temperature_scale(logits: Tensor, temperature: float) -> Tensor:
    return F.softmax(_logits.TemperatureLogitsWarper(float(temperature))(None, logits), -1)


def _top_k_filter(logits: Tensor, k: int) -> Tensor:
    return _by_rows(_logits.TopKLogitsWarper(int(k)), logits)


def _top_p_filter(logits: Tensor, p: float) -> Tensor:
    return _by_rows(_logits.TopPLogitsWarper(float(p)), logits)


def _by_rows(warper: Any, logits: Tensor) -> Tensor:
    """Warpers take scores [batch, V], and ids that these do not read."""
    out: Tensor = warper(None, logits.reshape(-1, logits.shape[-1]))
    return out.reshape(logits.shape)


def _rate(schedule: Any, step: int, lr: float, *arguments: int) -> float:
    """A schedule multiplies the rate of an optimizer by a function of the step."""
    optimizer = torch.optim.SGD([torch.zeros(1)], lr)
    factor: float = schedule(optimizer, *arguments).lr_lambdas[0](step)
    return lr * factor


def _warmup(step: int, *, max_lr: float, warmup_steps: int) -> float:
    return _rate(_optimization.get_constant_schedule_with_warmup, step, max_lr, warmup_steps)


def _warmup_cosine(step: int, *, max_lr: float, warmup_steps: int, total_steps: int) -> float:
    return _rate(_optimization.get_cosine_schedule_with_warmup, step, max_lr, warmup_steps, total_steps)


def _noam(step: int, *, d_model: int, warmup_steps: int) -> float:
    """The inverse square root, whose peak at the end of the warm-up is (d·w)^−½."""
    peak = (d_model * warmup_steps) ** -0.5
    return _rate(_optimization.get_inverse_sqrt_schedule, step, peak, warmup_steps)


RAW_OPS: dict[str, Any] = {
    "masked_lm_loss": _masked_lm_loss,
    "perplexity": _perplexity,
    "temperature_scale": _temperature_scale,
    "top_k_filter": _top_k_filter,
    "top_p_filter": _top_p_filter,
    "warmup": _warmup,
    "warmup_cosine": _warmup_cosine,
    "noam": _noam,
}
"""By the contract's names."""
