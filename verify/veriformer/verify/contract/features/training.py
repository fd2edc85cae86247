"""Features of optimizers, schedules, clipping and accumulation."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from veriformer.verify.contract.feature import Arguments, Feature
from veriformer.verify.contract.features.making import Named, fragile, ordinary

OPTIMIZERS = ("gradient_descent", "sgd_momentum", "adam", "adamw")
_SCHEDULES = ("warmup", "warmup_cosine", "noam")


def of_training(operation: str) -> Iterator[Feature]:
    """Yield the features of calls of optimizers, schedules, clipping and accumulation."""
    if operation in OPTIMIZERS:
        yield from ordinary(operation, *_optimizers())
        yield from fragile(operation, ("zero gradients", lambda a: any(bool((g == 0).all()) for g in a["grads"])))
    if operation in _SCHEDULES:
        yield from ordinary(operation, *_schedules())
    if operation == "clip_grad_norm":
        yield from ordinary(operation, ("a norm below max_norm", lambda a: _norm(a) < float(a["max_norm"])))
        yield from fragile(operation, ("gradients all zero", lambda a: _norm(a) == 0))
        yield from fragile(operation, ("gradients whose squares overflow", _overflows))
    if operation == "accumulate_gradients":
        yield from ordinary(operation, *_accumulation())


def _optimizers() -> tuple[Named, ...]:
    return (
        ("several steps", lambda a: a["grads"][0].shape[0] > 1),
        ("a gradient of None", lambda a: len(a["missing"]) > 0),
        ("zeroed gradients", lambda a: len(a["zeroed"]) > 0),
        ("a resumed run", lambda a: len(a["resumed"]) > 0),
        ("a state taken back", lambda a: len(a["rewound"]) > 0),
        ("parameters from a generator", lambda a: bool(a["lazily"])),
    )


def _schedules() -> tuple[Named, ...]:
    return (
        ("step 0", lambda a: 0 in a["step"]),
        ("steps past the warmup", lambda a: max(a["step"]) > a["warmup_steps"]),
        ("steps past total_steps", lambda a: max(a["step"]) > a["total_steps"]),
        ("total_steps equal to warmup_steps", lambda a: a["total_steps"] == a["warmup_steps"]),
    )


def _norm(a: Arguments) -> float:
    return float(torch.stack([x.double().square().sum() for x in a["grads"]]).sum().sqrt())


def _overflows(a: Arguments) -> bool:
    return any(bool((x.double().abs() > torch.finfo(x.dtype).max ** 0.5).any()) for x in a["grads"])


def _accumulation() -> tuple[Named, ...]:
    return (
        ("no micro-batches", lambda a: len(a["micro_batches"]) == 0),
        ("micro-batches of several sizes", lambda a: len({len(x) for x in a["micro_batches"]}) > 1),
        ("several micro-batches", lambda a: len(a["micro_batches"]) > 1),
        ("masked tokens", lambda a: any(not bool(x.all()) for x in a["masks"])),
        ("a micro-batch of no tokens", lambda a: any(not bool(x.any()) for x in a["masks"])),
        ("counts as tensors", lambda a: a["counted"] is not None),
        ("micro-batches from a generator", lambda a: bool(a["lazily"])),
    )
