"""Faults of the norms and of clipping."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from veriformer.verify.formulas.base import widen
from veriformer.verify.mutants.combinators import (
    Fault,
    Operation,
    change_arguments,
    edited,
    gradient_of,
    instead,
    with_gradient,
)

ONE_PASS = ("_mean(xp, centred * centred)", "_mean(xp, x * x) - _mean(xp, x) * _mean(xp, x)")
"""Edit of layer normalisation: the variance is E[x²] − E[x]²."""

_EPS_ON_DEVIATION = (("1 / xp.sqrt(", "1 / (xp.sqrt("), (" + eps)", ") + eps)"))


def summed_over_all(g: Tensor) -> Tensor:
    """Sum the gradient of a bias over its entries as well."""
    return g.sum().expand(g.shape)


def _bias_averaged(op: Operation, x: Tensor, weight: Tensor | None, bias: Tensor | None, *, eps: float) -> Tensor:
    rows = max(1, x.numel() // x.shape[-1])
    moved = None if bias is None else with_gradient(bias, lambda g: g / rows)
    y: Tensor = op(x, weight, moved, eps=eps)
    return y


def _one_plus_offset(x: Tensor, weight: Tensor | None, *, eps: float) -> Any:
    """Compute the gain as 1 + offset, with offset and sum rounded to the dtype of the weight."""
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


def _weight_summed_by_rows(op: Operation, x: Tensor, weight: Tensor | None, *, eps: float) -> Any:
    y = op(x, None, eps=eps)
    return y if weight is None else _NarrowWeightGradient.apply(y, weight).to(x.dtype)  # type: ignore[no-untyped-call]


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
    "LN-01": {
        "layer_norm": edited(
            "layer_norm",
            (
                "_mean(xp, centred * centred)",
                "xp.sum(centred * centred, axis=-1, keepdims=True) / (x.shape[-1] - 1)",
            ),
        )
    },
    "LN-02": {name: edited(name, *_EPS_ON_DEVIATION) for name in ("layer_norm", "rms_norm")},
    "LN-03": {"layer_norm": edited("layer_norm", ("xp.sqrt(", "xp.power("), (" + eps)", " + eps, 2)"))},
    "LN-04": {"layer_norm": edited("layer_norm", ONE_PASS)},
    "LN-08": {"rms_norm": change_arguments(_one_plus_offset)},
    "LN-09": {"rms_norm": edited("rms_norm", ("_mean(xp, x * x)", "xp.narrow(_mean(xp, xp.narrow(x * x)))"))},
    "LN-10": {"rms_norm": instead(_weight_summed_by_rows)},
    "LN-11": {"rms_norm": edited("rms_norm", ("x * x) + eps", "x * x) + eps / x.shape[-1]"))},
    "MLP-01": {"layer_norm": gradient_of(2, summed_over_all)},
    "MLP-02": {"layer_norm": instead(_bias_averaged)},
    "EMB-03": {"clip_grad_norm": instead(_first_counted_twice)},
    "CLIP-01": {"clip_grad_norm": instead(_per_shard)},
    "CLIP-03": {"clip_grad_norm": instead(_scaled_norms)},
}
