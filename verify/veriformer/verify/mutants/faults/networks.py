"""Faults of activations, networks, embeddings, dropout and first weights."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from veriformer.verify.mutants.base.networks import ACTIVATIONS, Gated, Mixture, Network, kept
from veriformer.verify.mutants.base.scores import widen
from veriformer.verify.targets.front import Kernel

Generator = torch.Generator | None


class _SummedOverAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, bias: Tensor) -> Tensor:
        return z + bias

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        return g, g.sum().expand(g.shape[-1])


class _Averaged(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, bias: Tensor) -> Tensor:
        return z + bias

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        rows = g.reshape(-1, g.shape[-1])
        return g, rows.sum(0) / max(1, rows.shape[0])


class _DividedTwice(torch.autograd.Function):
    """The mean squared error, whose gradient is divided by the number of samples twice."""

    @staticmethod
    def forward(ctx: Any, prediction: Tensor, target: Tensor) -> Tensor:
        error = widen(prediction) - widen(target)
        ctx.save_for_backward(error)
        ctx.samples = max(1, error.numel() // error.shape[-1])
        loss: Tensor = error.square().sum() / ctx.samples
        return loss.to(prediction.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        (error,) = ctx.saved_tensors
        return (2 * g * error / ctx.samples**2).to(g.dtype), None


def _network_with(function: Any) -> Network:
    return Network(plus=lambda z, bias: function.apply(z, bias))


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


def _softmax_of_all(scores: Tensor, see: Tensor) -> Tensor:
    return scores.softmax(-1).masked_fill(~see, 0)


def _scaled_head(h: Tensor, weight: Tensor) -> Tensor:
    return F.linear(widen(h) * h.shape[-1] ** -0.5, widen(weight)).to(h.dtype)


def _half_of_the_gradient(h: Tensor, weight: Tensor) -> Tensor:
    return F.linear(widen(h), widen(weight.detach())).to(h.dtype)


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


def _narrow_sum(x: Tensor, fx: Tensor, scale: float) -> Tensor:
    return x + fx * scale


def _packed(n_in: int, n_out: int, generator: Generator) -> Tensor:
    return torch.randn(n_in, n_out, generator=generator) * math.sqrt(2 / (n_in + 3 * n_out))


def _by_head(n_in: int, n_out: int, generator: Generator) -> Tensor:
    return torch.randn(n_in, n_out, generator=generator) / math.sqrt(max(1, n_in // 4))


def _by_rate(x: Tensor, p: float, training: bool, generator: Generator) -> Tensor:
    return torch.where(kept(x.shape, p, generator), x, 0) / p if training and p else x


def _keeps_what_it_drops(x: Tensor, p: float, training: bool, generator: Generator) -> Tensor:
    return torch.where(kept(x.shape, p, generator), 0, x) / max(p, 1e-6) if training and p else x


class _FreshMask(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float, generator: Generator) -> Tensor:
        ctx.p, ctx.generator = p, generator
        return torch.where(kept(x.shape, p, generator), x, 0) / (1 - p)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None]:
        return torch.where(kept(g.shape, ctx.p, ctx.generator), g, 0) / (1 - ctx.p), None, None


def _recomputed(x: Tensor, p: float, training: bool, generator: Generator) -> Tensor:
    if not training or p in (0, 1):
        return x * (0 if training and p else 1)
    out: Tensor = _FreshMask.apply(x, p, generator)  # type: ignore[no-untyped-call]
    return out


_GROUP = 4


def _together(x: Tensor, p: float, training: bool, generator: Generator) -> Tensor:
    if not training or p in (0, 1):
        return x * (0 if training and p else 1)
    keep = kept(torch.Size([math.ceil(x.numel() / _GROUP)]), p, generator)
    return torch.where(keep.repeat_interleave(_GROUP)[: x.numel()].reshape(x.shape), x, 0) / (1 - p)


def _same_on_every_shard(x: Tensor, p: float, training: bool, generator: Generator) -> Tensor:
    if not training or p in (0, 1):
        return x * (0 if training and p else 1)
    return torch.where(kept(x[:1].shape, p, generator).expand(x.shape), x, 0) / (1 - p)


def _other_form(x: Tensor, approximate: str) -> Tensor:
    return F.gelu(x)


_TANH = {**ACTIVATIONS, "gelu": lambda z: F.gelu(z, approximate="tanh")}
_AS_IT_IS = Network(widen=lambda x: x)

KERNELS: dict[str, dict[str, Kernel]] = {
    "MLP-01": {name: _network_with(_SummedOverAll) for name in ("mlp", "feed_forward")},
    "MLP-02": {
        **{name: _network_with(_Averaged) for name in ("mlp", "feed_forward")},
        "mse_loss": lambda prediction, target: _DividedTwice.apply(prediction, target),  # type: ignore[no-untyped-call]
    },
    "ACT-01": {"gelu": _other_form, "feed_forward": Network(activations=_TANH)},
    "ACT-02": {"swiglu": Gated(gated=lambda gate, up: gate * F.silu(up))},
    "ACT-03": {"silu": lambda x: _OverflowingSlope.apply(x)},  # type: ignore[no-untyped-call]
    "MOE-01": {"mixture_of_experts": Mixture(gates=_softmax_of_all)},
    "FFN-01": {"mlp": _AS_IT_IS, "feed_forward": _AS_IT_IS},
    "RES-01": {"residual": _narrow_sum},
    "EMB-02": {"lm_head": _half_of_the_gradient},
    "EMB-04": {"lm_head": _scaled_head},
    "EMB-05": {"token_embedding": lambda ids, weight: _NarrowSums.apply(ids.long(), weight)},  # type: ignore[no-untyped-call]
    "INIT-02": {"xavier_normal": _packed},
    "INIT-03": {"xavier_normal": _by_head},
    "DO-02": {"dropout": _by_rate},
    "DO-03": {"dropout": _keeps_what_it_drops},
    "DO-05": {"dropout": _recomputed},
    "DO-06": {"dropout": _together},
    "DO-08": {"dropout": _same_on_every_shard},
}
