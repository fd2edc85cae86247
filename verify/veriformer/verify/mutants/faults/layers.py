"""Faults of the norms and of clipping."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from veriformer.verify.mutants.base.layers import Clip, LayerNorm, Norm, RmsNorm, global_norm, inverse_root
from veriformer.verify.mutants.base.scores import widen
from veriformer.verify.targets.front import Kernel


def _unbiased(x: Tensor, mean: Tensor) -> Tensor:
    return (x - mean).square().sum(-1, keepdim=True) / (x.shape[-1] - 1)


def _eps_on_deviation(moment: Tensor, eps: float, d: int) -> Tensor:
    return 1 / (moment.sqrt() + eps)


def _squared(moment: Tensor, eps: float, d: int) -> Tensor:
    return 1 / (moment + eps) ** 2


def _one_pass(x: Tensor, mean: Tensor) -> Tensor:
    return x.square().mean(-1, keepdim=True) - mean.square()


class _BiasSummedOverAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, bias: Tensor) -> Tensor:
        return y + bias

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        return g, g.sum().expand(g.shape[-1])


class _BiasAveraged(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, bias: Tensor) -> Tensor:
        return y + bias

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        rows = g.flatten(0, -2) if g.ndim > 1 else g[None]
        return g, rows.sum(0) / max(1, rows.shape[0])


def _eps_on_sum(moment: Tensor, eps: float, d: int) -> Tensor:
    return inverse_root(moment, eps / d, d)


def _narrow_square(x: Tensor) -> Tensor:
    return widen(x.square().mean(-1, keepdim=True))


def _one_plus_offset(y: Tensor, weight: Tensor) -> Tensor:
    """The gain as 1 + offset, with offset and sum held in the dtype of the weight."""
    return y * (1 + (weight - 1))


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


def _first_counted_twice(grads: list[Tensor]) -> Norm:
    return global_norm([*grads, *grads[:1]])


def _per_shard(grads: list[Tensor]) -> list[Norm]:
    half = (len(grads) + 1) // 2
    shards = grads[:half], grads[half:]
    return [global_norm(shard) for shard in shards for _ in shard]


def _first_shard(grads: list[Tensor]) -> Norm:
    return global_norm(grads[: (len(grads) + 1) // 2])


_LOSS_SCALE = 65536.0


def _scaled_norms(grads: list[Tensor]) -> list[Norm]:
    r, s = global_norm(grads)
    return [(r * _LOSS_SCALE, s)] * len(grads)


KERNELS: dict[str, dict[str, Kernel]] = {
    "LN-01": {"layer_norm": LayerNorm(variance=_unbiased)},
    "LN-02": {"layer_norm": LayerNorm(inverse=_eps_on_deviation)},
    "LN-03": {"layer_norm": LayerNorm(inverse=_squared)},
    "LN-04": {"layer_norm": LayerNorm(variance=_one_pass)},
    "LN-08": {"rms_norm": RmsNorm(times=_one_plus_offset)},
    "LN-09": {"rms_norm": RmsNorm(mean_square=_narrow_square)},
    "LN-10": {"rms_norm": RmsNorm(times=lambda y, weight: _NarrowWeightGradient.apply(y, weight))},  # type: ignore[no-untyped-call]
    "LN-11": {"rms_norm": RmsNorm(inverse=_eps_on_sum)},
    "MLP-01": {"layer_norm": LayerNorm(plus=lambda y, bias: _BiasSummedOverAll.apply(y, bias))},  # type: ignore[no-untyped-call]
    "MLP-02": {"layer_norm": LayerNorm(plus=lambda y, bias: _BiasAveraged.apply(y, bias))},  # type: ignore[no-untyped-call]
    "EMB-03": {
        "clip_grad_norm": Clip(
            norms=lambda grads: [_first_counted_twice(grads)] * len(grads),
            total=_first_counted_twice,
        )
    },
    "CLIP-01": {"clip_grad_norm": Clip(norms=_per_shard, total=_first_shard)},
    "CLIP-03": {"clip_grad_norm": Clip(norms=_scaled_norms)},
}
