"""Calls of optimizers over one tensor of P parameters, after s steps, and of what is done to gradients."""

from __future__ import annotations

import torch

from veriformer.bench.operations.family import Call, Costs, Family, Operation, Sizes, random
from veriformer.bench.operations.scores import named, rowwise
from veriformer.spec.costs import symbol
from veriformer.spec.optimization.costs_optimizers import optimizer_costs

_NAMES = ("gradient_descent", "sgd_momentum", "adam", "adamw")


def _parameter(s: Sizes) -> torch.Tensor:
    p = random(s["P"]).requires_grad_()
    p.grad = random(s["P"])
    return p


def _step(operation: Operation, s: Sizes) -> Call:
    """A step after s others."""
    p = _parameter(s)
    optimizer = operation([p], 1e-3)
    for _ in range(s["s"]):
        optimizer.step()
    return Call(lambda: optimizer.step(), [p, p.grad], gradients=False)  # type: ignore[list-item]


def _made(operation: Operation, s: Sizes) -> Call:
    """An optimizer after s steps."""
    p = _parameter(s)

    def run() -> object:
        optimizer = operation([p], 1e-3)
        for _ in range(s["s"]):
            optimizer.step()
        return optimizer

    return Call(run, [p, p.grad], gradients=False)  # type: ignore[list-item]


def _clipped(operation: Operation, s: Sizes) -> Call:
    grads = [random(s["N"], s["d"])]
    return Call(lambda: operation(grads, 0.5), grads, gradients=False)


def _accumulated(operation: Operation, s: Sizes) -> Call:
    """Two micro-batches of a sum."""
    p, batches = random(s["P"]).requires_grad_(), [random(s["P"]), random(s["P"])]

    def loss(batch: torch.Tensor) -> tuple[torch.Tensor, int]:
        return (p * batch).sum(), s["P"]

    return Call(lambda: operation(loss, [p], batches), [p, *batches], gradients=False)


def _of(name: str) -> tuple[Family, Family]:
    step = named(optimizer_costs(name))
    known = Costs(flops=step.flops, moved=step.moved, others=step.others, waits=lambda: 0 * symbol("w"))
    return (
        Family(name, "P s", _step, known, case="a step"),
        Family(name, "P s", _made, Costs(kept=step.kept), case="state"),
    )


FAMILIES = (
    *(family for name in _NAMES for family in _of(name)),
    Family("clip_grad_norm", "N d", _clipped, rowwise("clip_grad_norm")),
    Family("accumulate_gradients", "P", _accumulated, named(optimizer_costs("accumulation"))),
)
