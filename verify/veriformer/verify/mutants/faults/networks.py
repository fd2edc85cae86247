"""Faults of activations, networks, embeddings and first weights."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from veriformer.verify.formulas.base import widen
from veriformer.verify.mutants.combinators import (
    Fault,
    Operation,
    change_arguments,
    edited,
    instead,
    replace_by,
    with_gradient,
    without,
)
from veriformer.verify.mutants.faults.layers import summed_over_all


def _biases_summed_over_all(op: Operation, x: Tensor, *weights: Tensor, **options: Any) -> Tensor:
    w1, b1, w2, b2 = weights
    y: Tensor = op(x, w1, with_gradient(b1, summed_over_all), w2, with_gradient(b2, summed_over_all), **options)
    return y


def _biases_averaged(op: Operation, x: Tensor, *weights: Tensor, **options: Any) -> Tensor:
    rows = max(1, math.prod(x.shape[:-1]))
    w1, b1, w2, b2 = weights
    mean = [with_gradient(b, lambda g: g / rows) for b in (b1, b2)]
    y: Tensor = op(x, w1, mean[0], w2, mean[1], **options)
    return y


def _divided_twice(op: Operation, prediction: Tensor, target: Tensor) -> Tensor:
    """Compute the mean squared error, its gradient divided by the number of samples twice."""
    samples = max(1, prediction.numel() // prediction.shape[-1])
    loss: Tensor = op(with_gradient(prediction, lambda g: g / samples), target)
    return loss


class _OverflowingSlope(torch.autograd.Function):
    """SiLU whose backward multiplies x by e^−x before it divides."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return F.silu(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = (widen(t) for t in ctx.saved_tensors)
        e = (-x).exp()
        return (g * (1 + e + x * e) / (1 + e) ** 2).to(g.dtype)


class _NarrowSums(torch.autograd.Function):
    """Cotangents of repeated tokens are added in the dtype of the table."""

    @staticmethod
    def forward(ctx: Any, ids: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(ids, weight)
        return weight[ids]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[None, Tensor]:
        ids, weight = ctx.saved_tensors
        total = torch.zeros_like(weight)
        for i, row in zip(ids.flatten().tolist(), g.reshape(-1, weight.shape[1]), strict=True):
            total[i] = total[i] + row
        return None, total


def _packed(op: Operation, n_in: int, n_out: int, **options: Any) -> Tensor:
    w: Tensor = op(n_in, n_out, **options)
    return w * math.sqrt(max(n_in + n_out, 1) / max(n_in + 3 * n_out, 1))


def _by_head(op: Operation, n_in: int, n_out: int, **options: Any) -> Tensor:
    w: Tensor = op(n_in, n_out, **options)
    return w * math.sqrt(max(n_in + n_out, 1) / 2 / max(1, n_in // 4))


_TANH = ("[activation].function(xp, z)", '[{"gelu": "gelu_tanh"}.get(activation, activation)].function(xp, z)')
_NARROW = ("linear(xp, x, w1, b1), activation)", "xp.narrow(linear(xp, x, w1, b1)), activation)")

FAULTS: dict[str, dict[str, Fault]] = {
    "MLP-01": dict.fromkeys(("mlp", "feed_forward"), instead(_biases_summed_over_all)),
    "MLP-02": {
        **dict.fromkeys(("mlp", "feed_forward"), instead(_biases_averaged)),
        "mse_loss": instead(_divided_twice),
    },
    "ACT-01": {"gelu": without("approximate"), "feed_forward": edited("feed_forward", _TANH)},
    "ACT-02": {"swiglu": change_arguments(lambda x, w_gate, w_up, w_down: ((x, w_up, w_gate, w_down), {}))},
    "ACT-03": {"silu": replace_by(lambda x: _OverflowingSlope.apply(x))},  # type: ignore[no-untyped-call]
    "MOE-01": {
        "mixture_of_experts": edited(
            "mixture_of_experts",
            ("gates = p if renormalised else", "gates ="),
            ("xp.where(see, scores, -np.inf) if renormalised else scores", "scores"),
        )
    },
    "FFN-01": {name: edited(name, _NARROW) for name in ("mlp", "feed_forward")},
    "RES-01": {"residual": edited("residual", ("fx if scale == 1 else fx * scale", "xp.narrow(fx * scale)"))},
    "EMB-02": {"lm_head": change_arguments(lambda h, weight: ((h, weight.detach()), {}))},
    "EMB-04": {"lm_head": edited("lm_head", ("xp.matmul(h,", "xp.matmul(h * h.shape[-1] ** -0.5,"))},
    "EMB-05": {"token_embedding": replace_by(lambda ids, weight: _NarrowSums.apply(ids.long(), weight))},  # type: ignore[no-untyped-call]
    "INIT-02": {"xavier_normal": instead(_packed)},
    "INIT-03": {"xavier_normal": instead(_by_head)},
}
