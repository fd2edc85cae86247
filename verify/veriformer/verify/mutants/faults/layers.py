"""Faults of the norms and of clipping."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from veriformer.verify.mutants.combinators import (
    Fault,
    Operation,
    given,
    gradient_of,
    instead,
    replaced_by,
    with_gradient,
)
from veriformer.verify.mutants.staged_reference.layers import LayerNorm, RmsNorm
from veriformer.verify.mutants.staged_reference.scores import widen


def _unbiased(x: Tensor, mean: Tensor) -> Tensor:
    return (x - mean).square().sum(-1, keepdim=True) / (x.shape[-1] - 1)


def _eps_on_deviation(moment: Tensor, eps: float, d: int) -> Tensor:
    return 1 / (moment.sqrt() + eps)


def _squared(moment: Tensor, eps: float, d: int) -> Tensor:
    return 1 / (moment + eps) ** 2


def _one_pass(x: Tensor, mean: Tensor) -> Tensor:
    return x.square().mean(-1, keepdim=True) - mean.square()


def summed_over_all(g: Tensor) -> Tensor:
    """The gradient of a bias, summed over its entries as well."""
    return g.sum().expand(g.shape)


def _bias_averaged(op: Operation, x: Tensor, weight: Tensor | None, bias: Tensor | None, *, eps: float) -> Tensor:
    rows = max(1, x.numel() // x.shape[-1])
    moved = None if bias is None else with_gradient(bias, lambda g: g / rows)
    y: Tensor = op(x, weight, moved, eps=eps)
    return y


def _eps_on_sum(x: Tensor, weight: Tensor | None, *, eps: float) -> Any:
    return (x, weight), {"eps": eps / x.shape[-1]}


def _narrow_square(x: Tensor) -> Tensor:
    return widen(x.square().mean(-1, keepdim=True))


def _one_plus_offset(x: Tensor, weight: Tensor | None, *, eps: float) -> Any:
    """The gain as 1 + offset, with offset and sum held in the dtype of the weight."""
    return (x, None if weight is None else 1 + (weight - 1)), {"eps": eps}


class _NarrowWeightGradient(torch.autograd.Function):
    """The weight's gradient is summed row by row in the weight's own dtype."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(y, weight)
        return y * widen(weight)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        y, weight = ctx.saved_tensors
        total = torch.zeros_like(weight)
        for row in (g * y).reshape(-1, weight.numel()).to(weight.dtype):
            total = total + row
        return g * widen(weight), total


def _first_counted_twice(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    clipped, norm = op([*grads, *grads[:1]], max_norm)
    return clipped[: len(grads)], norm


def _per_shard(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    half = (len(grads) + 1) // 2
    (first, norm), (rest, _) = op(grads[:half], max_norm), op(grads[half:], max_norm)
    return [*first, *rest], norm


_LOSS_SCALE = 65536.0


def _scaled_norms(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    return op(grads, max_norm / _LOSS_SCALE)[0], op(grads, max_norm)[1]


FAULTS: dict[str, dict[str, Fault]] = {
    "LN-01": {"layer_norm": replaced_by(LayerNorm(variance=_unbiased))},
    "LN-02": {
        "layer_norm": replaced_by(LayerNorm(inverse=_eps_on_deviation)),
        "rms_norm": replaced_by(RmsNorm(inverse=_eps_on_deviation)),
    },
    "LN-03": {"layer_norm": replaced_by(LayerNorm(inverse=_squared))},
    "LN-04": {"layer_norm": replaced_by(LayerNorm(variance=_one_pass))},
    "LN-08": {"rms_norm": given(_one_plus_offset)},
    "LN-09": {"rms_norm": replaced_by(RmsNorm(mean_square=_narrow_square))},
    "LN-10": {"rms_norm": replaced_by(RmsNorm(times=lambda y, weight: _NarrowWeightGradient.apply(y, weight)))},  # type: ignore[no-untyped-call]
    "LN-11": {"rms_norm": given(_eps_on_sum)},
    "MLP-01": {"layer_norm": gradient_of(2, summed_over_all)},
    "MLP-02": {"layer_norm": instead(_bias_averaged)},
    "EMB-03": {"clip_grad_norm": instead(_first_counted_twice)},
    "CLIP-01": {"clip_grad_norm": instead(_per_shard)},
    "CLIP-03": {"clip_grad_norm": instead(_scaled_norms)},
}
