"""Small faults of scores, norms and clipping, one for each law that must see it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.negative_controls.common import known, mixed, more, shifted
from veriformer.verify.mutants.combinators import (
    Fault,
    Operation,
    change_arguments,
    change_result,
    gradient_of,
    instead,
    without,
)


def by_place(op: Operation, z: Tensor, dim: int = -1) -> Tensor:
    shape = [1] * z.ndim
    shape[dim] = z.shape[dim]
    return op(z + 0.1 * torch.arange(z.shape[dim]).reshape(shape).to(z.dtype), dim)


def naive_cross_entropy(op: Operation, logits: Tensor, target: Tensor, **options: Any) -> Tensor:
    e = logits.exp()
    return op((e / e.sum(-1, keepdim=True)).log(), target, **options)


def zero_times_infinity(op: Operation, logits: Tensor, target: Tensor, **options: Any) -> Tensor:
    result = op(logits, target, **options)
    return result * torch.nan if logits.isinf().any() else result


def mean_of_means(op: Operation, logits: Tensor, target: Tensor, **options: Any) -> Tensor:
    half = (len(target) + 1) // 2 if target.ndim else 0
    if not 0 < half < len(target):
        return op(logits, target, **options)
    parts = (op(logits[:half], target[:half], **options), op(logits[half:], target[half:], **options))
    return (parts[0] * parts[1]).sqrt()


def eps_on_root(op: Operation, x: Tensor, weight: Any = None, *, eps: float = 1e-6) -> Tensor:
    y = x / (x.square().mean(-1, keepdim=True).sqrt() + eps)
    return y if weight is None else y * weight


def squares_in_half(op: Operation, x: Tensor, *args: Any, **options: Any) -> Tensor:
    return op(x, *args, **options) * (1 + 0 * x.half().square().sum(-1, keepdim=True).to(x.dtype))


def plus_weight(op: Operation, x: Tensor, weight: Any = None, *args: Any, **options: Any) -> Tensor:
    y = op(x, None, *args[1:], **{k: v for k, v in options.items() if k != "bias"})
    weight = options.get("weight", weight)
    y = y if weight is None else y + weight
    return y + options["bias"] if options.get("bias") is not None else y


def per_tensor(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    norms = op(grads, max_norm)[1]
    return [op([g], max_norm)[0][0] for g in grads], norms


def naive_clip(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    norm = sum((g.square().sum() for g in grads), torch.zeros(())).sqrt()
    factor = (max_norm / norm).clamp(max=1)
    return [g * factor for g in grads], norm


def as_set(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    once = [g for i, g in enumerate(grads) if not any(torch.equal(g, h) for h in grads[:i] if g.shape == h.shape)]
    norm = op(once, max_norm)[1]
    factor = (max_norm / norm).clamp(max=1) if norm > 0 else torch.ones(())
    return [g * factor.to(g.dtype) for g in grads], norm


def in_one_dtype(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    clipped, norm = op(grads, max_norm)
    return [g.float() for g in clipped], norm


def always_scales(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    norm = op(grads, max_norm)[1]
    return [g * (min(max_norm, 1e30) / norm) for g in grads], norm


def needs_some(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    clipped, norm = op(grads, max_norm)
    return clipped, norm if clipped and clipped[0].numel() else norm * torch.nan


def divides_by_zero(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    norm = op(grads, max_norm)[1]
    return [g / norm * min(max_norm, 1.0) if norm == 0 else g for g in grads], norm


def small_epsilon(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    norm = op(grads, max_norm)[1]
    return [g * (max_norm / (norm + 1e-6)).clamp(max=1).to(g.dtype) for g in grads], norm


def absolute_units(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    return op(grads, min(max_norm, 1.0))


def short_numbers(logits: Tensor, labels: Tensor, **options: Any) -> Any:
    """Labels in 15 bits."""
    return (logits, labels if labels.is_floating_point() else torch.where(labels > 0, labels % 2**15, labels)), options


SPECIFIC: dict[str, Fault] = {
    "softmax.sensitivity": without("dim"),
    "softmax.shift": known("SM-02", "softmax"),
    "softmax.jacobian": gradient_of(0, shifted),
    "softmax.permutation": instead(by_place),
    "softmax.range": known("SM-02", "softmax"),
    "logsumexp.between": change_result(lambda x: x - 3.0),
    "logsumexp.range": known("SM-02", "logsumexp"),
    "cross_entropy.conservation": gradient_of(0, shifted),
    "cross_entropy.ignored": instead(lambda op, z, t, **o: op(z, t, **o) + 0.01 * z.mean()),
    "cross_entropy.reductions": known("CE-02", "cross_entropy"),
    "cross_entropy.smoothing": change_arguments(
        lambda *a, label_smoothing=0.0, **o: (a, {**o, "label_smoothing": label_smoothing**2})
    ),
    "cross_entropy.one_hot": change_arguments(
        lambda z, t, **o: ((z, t), {**o, "label_smoothing": 0.0} if t.is_floating_point() else o)
    ),
    "cross_entropy.partition": change_result(mixed),
    "cross_entropy.range": instead(naive_cross_entropy),
    "cross_entropy.far_classes": change_arguments(short_numbers),
    "cross_entropy.hidden_classes": instead(zero_times_infinity),
    "cross_entropy.no_target": change_result(lambda x: torch.where(x == 0, torch.nan, x)),
    "perplexity.uniform": change_result(lambda x: x.log2()),
    "perplexity.counted": change_arguments(
        lambda z, t, **o: ((z + 0.1 * z.mean(), t) if z.ndim > 3 else (z * len(z) / 3, t), o)
    ),
    "perplexity.partition": instead(mean_of_means),
    "perplexity.range": instead(naive_cross_entropy),
    "perplexity.far_classes": change_arguments(short_numbers),
    "perplexity.no_target": change_result(lambda x: torch.where(x == 1, 0 * x, x)),
    "layer_norm.shift": change_arguments(lambda x, *a, **o: ((x + 0.1 * x * x, *a), o)),
    "layer_norm.scale": known("LN-02", "layer_norm"),
    "layer_norm.odd": change_result(torch.abs),
    "layer_norm.affine": instead(plus_weight),
    "layer_norm.near_eps": known("LN-02", "layer_norm"),
    "layer_norm.constant_rows": known("LN-02", "layer_norm"),
    "layer_norm.range": instead(squares_in_half),
    "layer_norm.conditioning": known("LN-04", "layer_norm"),
    "rms_norm.scale": instead(eps_on_root),
    "rms_norm.odd": change_result(torch.abs),
    "rms_norm.affine": instead(plus_weight),
    "rms_norm.near_eps": instead(eps_on_root),
    "rms_norm.range": instead(squares_in_half),
    "clip_grad_norm.direction": change_result(shifted),
    "clip_grad_norm.norm_bound": change_result(more),
    "clip_grad_norm.identity": instead(always_scales),
    "clip_grad_norm.zero_maximum": change_arguments(lambda grads, max_norm: ((grads, max_norm or 1.0), {})),
    "clip_grad_norm.no_gradients": instead(needs_some),
    "clip_grad_norm.zero_gradients": instead(divides_by_zero),
    "clip_grad_norm.not_finite": change_arguments(
        lambda grads, max_norm: (([g.nan_to_num(0, 0, 0) for g in grads], max_norm), {})
    ),
    "clip_grad_norm.range": instead(naive_clip),
    "clip_grad_norm.scale": instead(absolute_units),
    "clip_grad_norm.duplicates": instead(as_set),
    "clip_grad_norm.grouping": instead(per_tensor),
    "clip_grad_norm.mixed_dtypes": instead(in_one_dtype),
    "clip_grad_norm.denominator": instead(small_epsilon),
}
