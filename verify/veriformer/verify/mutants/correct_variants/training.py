"""Other ways to the optimizers, the schedules and accumulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from veriformer.verify.mutants.records import Variant
from veriformer.verify.mutants.staged_reference.optimizers import (
    DECOUPLED,
    Adam,
    Betas,
    Momentum,
    descend,
    gradient_alone,
    shrunk,
    stepping,
)
from veriformer.verify.mutants.staged_reference.scores import widen
from veriformer.verify.mutants.staged_reference.training import Accumulation, Gradients, noam, warmup, warmup_cosine


def _lerp(old: Tensor, new: Tensor, beta: float) -> Tensor:
    """From the nearer end, or an average of squares that falls far may come out below 0."""
    return torch.lerp(old, new, 1 - beta)


def _folded(p: Tensor, g: Tensor, state: dict[str, Any], *, decoupled: bool, lr: float, betas: Betas, eps: float, weight_decay: float) -> None:  # fmt: skip # noqa: E501
    """The correction in the learning rate and in ε, decay after the step's numerator, squares first."""
    t = state["t"] = state.get("t", 0) + 1
    if decoupled:
        p.mul_(1 - lr * weight_decay)
    else:
        g = g.add(p, alpha=weight_decay)
    m = state.setdefault("m", torch.zeros_like(p)).lerp_(g, 1 - betas[0])
    v = state.setdefault("v", torch.zeros_like(p)).mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
    root = math.sqrt(1 - betas[1] ** t)
    p.addcdiv_(m, v.sqrt().add_(eps * root), value=-lr * root / (1 - betas[0] ** t))


def _shrunk_afterwards(
    p: Tensor, g: Tensor, state: dict[str, Any], *, lr: float, weight_decay: float, **o: Any
) -> None:
    """Adam's step without decay, and the decay of what it gives."""
    Adam(pull=gradient_alone)(p, g, state, lr=lr, weight_decay=0.0, **o)
    p.copy_(shrunk(p, lr, weight_decay))


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


def _unscaled(m: Tensor, v: Tensor, betas: Betas, t: int) -> tuple[Tensor, Tensor]:
    """Corrections through expm1 and log1p, which keep their digits for β near 1."""
    return tuple(x / (-math.expm1(t * math.log(b)) if b else 1.0) for x, b in zip((m, v), betas, strict=True))  # type: ignore[return-value]


def _reciprocal(v_hat: Tensor, eps: float, beta_2: float, t: int) -> Tensor:
    return 1 / (1 / (v_hat.sqrt() + eps))


def _eps_hat(v_hat: Tensor, eps: float, beta_2: float, t: int) -> Tensor:
    return v_hat.sqrt() + eps / math.sqrt(1 - beta_2**t)


def _eps_inside(v_hat: Tensor, eps: float, beta_2: float, t: int) -> Tensor:
    return (v_hat + eps).sqrt()


def _undamped(params: Sequence[Tensor], lr: float, *, beta: float) -> torch.optim.Optimizer:
    return torch.optim.SGD(params, lr, momentum=beta)


def _fused(optimizer: Callable[..., Any]) -> Callable[..., Any]:
    """PyTorch's fused kernels, for parameters that are contiguous: gradients are read as if they lay alike."""

    def make(params: Sequence[Tensor], lr: float, **options: Any) -> Any:
        made = optimizer(params, lr, fused=all(p.is_contiguous() for p in params), **options)
        made.register_step_pre_hook(_with_contiguous_gradients)
        return made

    return make


def _with_contiguous_gradients(optimizer: torch.optim.Optimizer, args: Any, options: Any) -> None:
    for p in (p for group in optimizer.param_groups for p in group["params"] if p.grad is not None):
        p.grad = p.grad.contiguous()


def _gradient_itself(g: Tensor) -> Tensor:
    return g.clone()


def _exactly(step: int, *, max_lr: float, warmup_steps: int) -> float:
    """In rational numbers, rounded once."""
    return float(Fraction(float(max_lr)) * (Fraction(int(step), int(warmup_steps)) if step < warmup_steps else 1))


def _half_angle(step: int, *, max_lr: float, warmup_steps: int, total_steps: int) -> float:
    """cos² of half the angle, from the warmup on."""
    if step >= total_steps:
        return 0.0
    if step < warmup_steps:
        return _exactly(step, max_lr=max_lr, warmup_steps=warmup_steps)
    share = Fraction(int(step - warmup_steps), int(total_steps - warmup_steps))
    return max_lr * math.cos(math.pi / 2 * float(share)) ** 2


def _from_its_peak(step: int, *, d_model: int, warmup_steps: int) -> float:
    """The peak, times how far the warmup is, times the decay."""
    peak = 1 / math.sqrt(d_model * warmup_steps)
    return peak * min(step / warmup_steps, 1.0) * min(math.sqrt(warmup_steps / step), 1.0)


def _in_numpy(step: int, *, max_lr: float, warmup_steps: int) -> float:
    return np.float64(max_lr) * np.minimum(np.float64(step), warmup_steps) / warmup_steps if warmup_steps else max_lr


def _from_one(step: int, *, max_lr: float, warmup_steps: int) -> float:
    return max_lr * (step + 1) / warmup_steps if step < warmup_steps else max_lr


def _cosine_from_one(step: int, *, max_lr: float, warmup_steps: int, total_steps: int) -> float:
    if step < warmup_steps:
        return _from_one(step, max_lr=max_lr, warmup_steps=warmup_steps)
    return warmup_cosine(step, max_lr=max_lr, warmup_steps=warmup_steps, total_steps=total_steps)


def _all_at_once(loss_fn: Any, params: Sequence[Tensor], micro_batches: Iterable[Any]) -> Gradients:
    """Take a single backward pass through the sum of all losses."""
    found = [loss_fn(batch) for batch in micro_batches]
    tokens = max(1, sum(int(count) for _, count in found))
    loss = sum((loss for loss, _ in found), torch.zeros((), dtype=params[0].dtype, requires_grad=True)) / tokens
    return list(torch.autograd.grad(loss, params, allow_unused=True, materialize_grads=True))


def _backwards(loss_fn: Any, params: Sequence[Tensor], micro_batches: Iterable[Any]) -> Gradients:
    """From the last micro-batch to the first."""
    return Accumulation()(loss_fn, params, list(micro_batches)[::-1])


def _weighted(loss_fn: Any, params: Sequence[Tensor], micro_batches: Iterable[Any]) -> Gradients:
    """Each micro-batch's gradient times its share of the tokens over its own mean."""
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
    """With ``backward()``, on parameters whose own gradients are put aside and back; sums in fp32 at least."""
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


def _both(**stages: Any) -> dict[str, Any]:
    return {"adam": stepping(Adam(**stages)), "adamw": stepping(Adam(**DECOUPLED, **stages))}


def _folded_in(decoupled: bool) -> Callable[..., None]:
    return lambda p, g, state, **options: _folded(p, g, state, decoupled=decoupled, **options)


VARIANTS: tuple[Variant, ...] = (
    Variant(
        identifier="training-base",
        title="The bases of the faults",
        kernels={
            "gradient_descent": stepping(descend),
            "sgd_momentum": stepping(Momentum()),
            **_both(),
            "warmup": warmup,
            "warmup_cosine": warmup_cosine,
            "noam": noam,
            "accumulate_gradients": Accumulation(),
        },
    ),
    Variant(
        identifier="optimizers-lerp",
        title="Averages as steps towards the new value",
        kernels={"sgd_momentum": stepping(Momentum(average=_lerp)), **_both(average=_lerp)},
    ),
    Variant(
        identifier="adam-folded",
        title="The correction folded into the learning rate and into ε, in place",
        kernels={"adam": stepping(_in_fp64(_folded_in(False))), "adamw": stepping(_in_fp64(_folded_in(True)))},
    ),
    Variant(
        identifier="optimizers-fp64",
        title="Updates in fp64 throughout",
        kernels={
            "gradient_descent": stepping(_in_fp64(descend)),
            "sgd_momentum": stepping(_in_fp64(Momentum())),
            "adam": stepping(_in_fp64(Adam())),
            "adamw": stepping(_in_fp64(Adam(**DECOUPLED))),
        },
    ),
    Variant(
        identifier="optimizers-flat",
        title="Parameters as rows, updated last to first",
        kernels={
            "gradient_descent": stepping(_flat(descend)),
            "sgd_momentum": stepping(_flat(Momentum())),
            "adam": stepping(_flat(Adam())),
            "adamw": stepping(_flat(Adam(**DECOUPLED))),
        },
    ),
    Variant(identifier="adam-expm1", title="The correction through expm1", kernels=_both(correct=_unscaled)),
    Variant(identifier="adam-reciprocal", title="A product with a reciprocal", kernels=_both(denominator=_reciprocal)),
    Variant(
        identifier="adam-fused",
        title="PyTorch's fused kernels",
        kernels={"adam": _fused(torch.optim.Adam), "adamw": _fused(torch.optim.AdamW)},
        claims={"dtypes": {"adam": ["fp64", "fp32"], "adamw": ["fp64", "fp32"]}},
    ),
    Variant(
        identifier="adam-eps-hat",
        title="ε is added before the correction, and the implementation says so",
        link="https://github.com/tensorflow/tensorflow/issues/9047",
        kernels=_both(denominator=_eps_hat),
        claims={"conventions": {"adam.eps": "hat"}},
    ),
    Variant(
        identifier="adam-eps-inside",
        title="ε is added under the root, and the implementation says so",
        kernels=_both(denominator=_eps_inside),
        claims={"conventions": {"adam.eps": "inside"}},
    ),
    Variant(
        identifier="adamw-decay-after",
        title="Decay shrinks the parameter after the step, and the implementation says so",
        link="https://github.com/stanford-cs336/assignment1-basics",
        kernels={"adamw": stepping(_shrunk_afterwards)},
        claims={"conventions": {"adamw.decay": "after"}},
    ),
    Variant(
        identifier="sgd-first-velocity-gradient",
        title="The first velocity is the first gradient, and the implementation says so",
        kernels={"sgd_momentum": stepping(Momentum(start=_gradient_itself))},
        claims={"conventions": {"sgd.first_velocity": "gradient"}},
    ),
    Variant(
        identifier="sgd-gradients-undamped",
        title="PyTorch's SGD, whose velocity takes the whole of each gradient, and the implementation says so",
        kernels={"sgd_momentum": _undamped},
        claims={"conventions": {"sgd.gradient_weight": "1"}},
    ),
    Variant(
        identifier="schedules-rational",
        title="Schedules in rational numbers, half angles, and from their peak",
        kernels={"warmup": _exactly, "warmup_cosine": _half_angle, "noam": _from_its_peak},
    ),
    Variant(identifier="warmup-numpy", title="The warmup in NumPy", kernels={"warmup": _in_numpy}),
    Variant(
        identifier="warmup-from-one",
        title="The first step counts as one, and the implementation says so",
        kernels={"warmup": _from_one, "warmup_cosine": _cosine_from_one},
        claims={"conventions": {"warmup.first_step": "one"}},
    ),
    Variant(
        identifier="accumulation-at-once",
        title="One backward pass through the sum of all losses",
        kernels={"accumulate_gradients": _all_at_once},
    ),
    Variant(
        identifier="accumulation-backwards",
        title="Micro-batches from the last to the first",
        kernels={"accumulate_gradients": _backwards},
    ),
    Variant(
        identifier="accumulation-weighted",
        title="Means of micro-batches weighted by their tokens",
        kernels={"accumulate_gradients": _weighted},
    ),
    Variant(
        identifier="accumulation-through-grad",
        title="Through backward(), with the gradients that were there put aside",
        kernels={"accumulate_gradients": _through_grad},
    ),
)
