"""Other ways to the optimizers, the schedules and accumulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from veriformer.spec.edits import Edit
from veriformer.verify.formulas.base import widen
from veriformer.verify.formulas.kernels import OptimizerKernel, kernel
from veriformer.verify.formulas.stepper import stepping
from veriformer.verify.mutants.faults.training import EPS_INSIDE
from veriformer.verify.mutants.records import Variant, variant

Betas = tuple[float, float]
Gradients = list[Tensor]

_OPTIMIZERS = ("gradient_descent", "sgd_momentum", "adam", "adamw")

_LERP: Edit = (
    "return mean * beta + value * (1 - xp.asarray(beta))",
    "return value + (mean - value) * beta if beta < 0.5 else mean + (value - mean) * (1 - xp.asarray(beta))",
)
"""Edit of averages: from the nearer end, or an average of squares that falls far may come out below 0."""

_EXPM1: Edit = ("return 1 - xp.power(xp.asarray(beta), t)", "return -np.expm1(t * np.log(beta)) if beta else 1.0")
"""Edit of the correction: through expm1 and log, which keep their digits for β near 1."""

_DENOMINATOR = "(xp.sqrt(v_hat) + eps)"
_RECIPROCAL: Edit = (_DENOMINATOR, f"(1 / (1 / {_DENOMINATOR}))")
_EPS_HAT: Edit = (_DENOMINATOR, "(xp.sqrt(v_hat) + eps / xp.sqrt(weight_so_far(xp, betas[1], s.t)))")

_SHRUNK_AFTERWARDS: Edit = (
    "theta=kept - adam_step(xp, s, lr=lr, betas=betas, eps=eps)",
    "theta=(theta - adam_step(xp, s, lr=lr, betas=betas, eps=eps)) * (1 - xp.asarray(lr) * weight_decay)",
)
"""Edit of AdamW: Adam's step without decay, and the decay of what it gives."""


def _folded(p: Tensor, g: Tensor, state: dict[str, Any], *, decoupled: bool, lr: float, betas: Betas, eps: float, weight_decay: float) -> None:  # fmt: skip # noqa: E501
    """Step with the bias correction in the learning rate and ε; decay after the step's numerator, squares first."""
    t = state["t"] = state.get("t", 0) + 1
    if decoupled:
        p.mul_(1 - lr * weight_decay)
    else:
        g = g.add(p, alpha=weight_decay)
    m = state.setdefault("m", torch.zeros_like(p)).lerp_(g, 1 - betas[0])
    v = state.setdefault("v", torch.zeros_like(p)).mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
    root = math.sqrt(1 - betas[1] ** t)
    p.addcdiv_(m, v.sqrt().add_(eps * root), value=-lr * root / (1 - betas[0] ** t))


def _in_fp64(update: Callable[..., None]) -> Callable[..., None]:
    """Compute the update and keep its state in fp64."""

    def wide(p: Tensor, g: Tensor, state: dict[str, Any], **options: Any) -> None:
        theta = p.double()
        update(theta, g.double(), state, **options)
        p.copy_(theta)

    return wide


def _flat(update: Callable[..., None]) -> Callable[..., None]:
    """Apply the update to the flattened entries of the parameter, last to first."""

    def flat(p: Tensor, g: Tensor, state: dict[str, Any], **options: Any) -> None:
        row = p.reshape(-1).flip(0).clone()
        update(row, g.reshape(-1).flip(0), state, **options)
        p.copy_(row.flip(0).reshape(p.shape))

    return flat


def _from_first_gradient(p: Tensor, g: Tensor, state: dict[str, Any], *, lr: float, beta: float) -> None:
    state["v"] = beta * state.get("v", g.clone()) + (1 - beta) * g
    p.copy_(p - lr * state["v"])


def _undamped(params: Sequence[Tensor], lr: float, *, beta: float) -> torch.optim.Optimizer:
    return torch.optim.SGD(params, lr, momentum=beta)


def _fused(optimizer: Callable[..., Any]) -> Callable[..., Any]:
    """Return PyTorch's fused optimizer for contiguous parameters; it reads gradients as if contiguous too."""

    def make(params: Sequence[Tensor], lr: float, **options: Any) -> Any:
        made = optimizer(params, lr, fused=all(p.is_contiguous() for p in params), **options)
        made.register_step_pre_hook(_with_contiguous_gradients)
        return made

    return make


def _with_contiguous_gradients(optimizer: torch.optim.Optimizer, args: Any, options: Any) -> None:
    for p in (p for group in optimizer.param_groups for p in group["params"] if p.grad is not None):
        p.grad = p.grad.contiguous()


def _exactly(step: int, *, max_lr: float, warmup_steps: int) -> float:
    """Compute in rational numbers, rounded once."""
    return float(Fraction(float(max_lr)) * (Fraction(int(step), int(warmup_steps)) if step < warmup_steps else 1))


def _half_angle(step: int, *, max_lr: float, warmup_steps: int, total_steps: int) -> float:
    """Compute cos² of half the angle, from the warmup on."""
    if step >= total_steps:
        return 0.0
    if step < warmup_steps:
        return _exactly(step, max_lr=max_lr, warmup_steps=warmup_steps)
    share = Fraction(int(step - warmup_steps), int(total_steps - warmup_steps))
    return max_lr * math.cos(math.pi / 2 * float(share)) ** 2


def _from_its_peak(step: int, *, d_model: int, warmup_steps: int) -> float:
    """Compute the peak, times the share of the warmup, times the decay."""
    peak = 1 / math.sqrt(d_model * warmup_steps)
    return peak * min(step / warmup_steps, 1.0) * min(math.sqrt(warmup_steps / step), 1.0)


def _in_numpy(step: int, *, max_lr: float, warmup_steps: int) -> float:
    return np.float64(max_lr) * np.minimum(np.float64(step), warmup_steps) / warmup_steps if warmup_steps else max_lr


def _from_one(step: int, *, max_lr: float, warmup_steps: int) -> float:
    return max_lr * (step + 1) / warmup_steps if step < warmup_steps else max_lr


def _cosine_from_one(step: int, *, max_lr: float, warmup_steps: int, total_steps: int) -> float:
    if step < warmup_steps:
        return _from_one(step, max_lr=max_lr, warmup_steps=warmup_steps)
    rate: float = kernel("warmup_cosine")(step, max_lr=max_lr, warmup_steps=warmup_steps, total_steps=total_steps)
    return rate


def _all_at_once(loss_fn: Any, params: Sequence[Tensor], micro_batches: Iterable[Any]) -> Gradients:
    """Take a single backward pass through the sum of all losses."""
    found = [loss_fn(batch) for batch in micro_batches]
    tokens = max(1, sum(int(count) for _, count in found))
    loss = sum((loss for loss, _ in found), torch.zeros((), dtype=params[0].dtype, requires_grad=True)) / tokens
    return list(torch.autograd.grad(loss, params, allow_unused=True, materialize_grads=True))


def _backwards(loss_fn: Any, params: Sequence[Tensor], micro_batches: Iterable[Any]) -> Gradients:
    """Accumulate from the last micro-batch to the first."""
    found: Gradients = kernel("accumulate_gradients")(loss_fn, params, list(micro_batches)[::-1])
    return found


def _weighted(loss_fn: Any, params: Sequence[Tensor], micro_batches: Iterable[Any]) -> Gradients:
    """Sum each micro-batch's gradient times its share of the tokens, over its own mean."""
    batches = list(micro_batches)
    counts = [int(loss_fn(batch)[1]) for batch in batches]
    total = [torch.zeros_like(p).double() for p in params]
    for batch, count in zip(batches, counts, strict=True):
        if count:
            mean = loss_fn(batch)[0] / count
            grads = torch.autograd.grad(mean, params, allow_unused=True, materialize_grads=True)
            total = [t + g.double() * (count / sum(counts)) for t, g in zip(total, grads, strict=True)]
    return [t.to(p.dtype) for t, p in zip(total, params, strict=True)]


def _through_grad(loss_fn: Any, params: Sequence[Tensor], micro_batches: Iterable[Any]) -> Gradients:
    """Accumulate through ``backward()``, the parameters' own ``grad`` saved and restored; sums in fp32 at least."""
    aside, tokens = [p.grad for p in params], 0
    sums = [torch.zeros_like(widen(p.detach())) for p in params]
    for batch in micro_batches:
        for p in params:
            p.grad = None
        loss, count = loss_fn(batch)
        tokens += int(count)
        loss.backward()
        sums = [total if p.grad is None else total + p.grad for total, p in zip(sums, params, strict=True)]
    for p, g in zip(params, aside, strict=True):
        p.grad = g
    return [(total / max(1, tokens)).to(p.dtype) for total, p in zip(sums, params, strict=True)]


def _both(*edits: Edit) -> dict[str, Any]:
    return {name: kernel(name, *edits) for name in ("adam", "adamw")}


def _folded_in(decoupled: bool) -> Callable[..., None]:
    return lambda p, g, state, **options: _folded(p, g, state, decoupled=decoupled, **options)


VARIANTS: tuple[Variant, ...] = (
    variant(
        "training-base",
        "The bases of the faults",
        {name: kernel(name) for name in (*_OPTIMIZERS, "warmup", "warmup_cosine", "noam", "accumulate_gradients")},
    ),
    variant(
        "optimizers-lerp",
        "Averages as steps towards the new value",
        {name: kernel(name, _LERP) for name in ("sgd_momentum", "adam", "adamw")},
    ),
    variant(
        "adam-folded",
        "The correction folded into the learning rate and into ε, in place",
        adam=stepping(_in_fp64(_folded_in(False))),
        adamw=stepping(_in_fp64(_folded_in(True))),
    ),
    variant(
        "optimizers-fp64",
        "Updates in fp64 throughout",
        {name: kernel(name, dtype=torch.float64) for name in _OPTIMIZERS},
    ),
    variant(
        "optimizers-flat",
        "Parameters as rows, updated last to first",
        {name: stepping(_flat(OptimizerKernel(name).update)) for name in _OPTIMIZERS},
    ),
    variant("adam-expm1", "The correction through expm1", _both(_EXPM1)),
    variant("adam-reciprocal", "A product with a reciprocal", _both(_RECIPROCAL)),
    variant(
        "adam-fused",
        "PyTorch's fused kernels",
        claims={"dtypes": {"adam": ["fp64", "fp32"], "adamw": ["fp64", "fp32"]}},
        adam=_fused(torch.optim.Adam),
        adamw=_fused(torch.optim.AdamW),
    ),
    variant(
        "adam-eps-hat",
        "ε is added before the correction, and the implementation says so",
        _both(_EPS_HAT),
        link="https://github.com/tensorflow/tensorflow/issues/9047",
        claims={"conventions": {"adam.eps": "hat"}},
    ),
    variant(
        "adam-eps-inside",
        "ε is added under the root, and the implementation says so",
        _both(EPS_INSIDE),
        claims={"conventions": {"adam.eps": "inside"}},
    ),
    variant(
        "adamw-decay-after",
        "Decay shrinks the parameter after the step, and the implementation says so",
        link="https://github.com/stanford-cs336/assignment1-basics",
        claims={"conventions": {"adamw.decay": "after"}},
        adamw=kernel("adamw", _SHRUNK_AFTERWARDS),
    ),
    variant(
        "sgd-first-velocity-gradient",
        "The first velocity is the first gradient, and the implementation says so",
        claims={"conventions": {"sgd.first_velocity": "gradient"}},
        sgd_momentum=stepping(_from_first_gradient),
    ),
    variant(
        "sgd-gradients-undamped",
        "PyTorch's SGD, whose velocity takes the whole of each gradient, and the implementation says so",
        claims={"conventions": {"sgd.gradient_weight": "1"}},
        sgd_momentum=_undamped,
    ),
    variant(
        "schedules-rational",
        "Schedules in rational numbers, half angles, and from their peak",
        warmup=_exactly,
        warmup_cosine=_half_angle,
        noam=_from_its_peak,
    ),
    variant("warmup-numpy", "The warmup in NumPy", warmup=_in_numpy),
    variant(
        "warmup-from-one",
        "The first step counts as one, and the implementation says so",
        claims={"conventions": {"warmup.first_step": "one"}},
        warmup=_from_one,
        warmup_cosine=_cosine_from_one,
    ),
    variant(
        "accumulation-at-once", "One backward pass through the sum of all losses", accumulate_gradients=_all_at_once
    ),
    variant("accumulation-backwards", "Micro-batches from the last to the first", accumulate_gradients=_backwards),
    variant("accumulation-weighted", "Means of micro-batches weighted by their tokens", accumulate_gradients=_weighted),
    variant(
        "accumulation-through-grad",
        "Through backward(), with the gradients that were there put aside",
        accumulate_gradients=_through_grad,
    ),
)
