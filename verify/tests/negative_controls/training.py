"""Small faults of optimizers, schedules and accumulation, one for each law that must see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tests.negative_controls.common import known
from veriformer.verify.mutants.combinators import Fault, Operation, change_any_result, instead, instead_of


class Spoiled:
    """A right optimizer with something more after each step: it gets the parameters and the number of steps."""

    def __init__(self, right: Any, after: Callable[[list[Tensor], int], Any]) -> None:
        self.right = right
        self.after = after
        self.steps = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.right, name)

    @torch.no_grad()
    def step(self) -> None:
        self.right.step()
        self.steps += 1
        self.after([p for group in self.right.param_groups for p in group["params"]], self.steps)


class Forgetful(Spoiled):
    """Optimizer that does not load its saved state."""

    def load_state_dict(self, saved: Any) -> None:
        pass


def after(change: Callable[[list[Tensor], int], Any], made: type[Spoiled] = Spoiled) -> Fault:
    return instead(lambda op, *args, **options: made(op(*args, **options), change))


def larger(params: list[Tensor], steps: int) -> None:
    for p in params:
        p.mul_(1.03125).add_(0.03125)


def larger_later(params: list[Tensor], steps: int) -> None:
    if steps > 20:
        larger(params, steps)


def other_dtype(params: list[Tensor], steps: int) -> None:
    for p in params:
        p.grad = None
        p.data = p.data.float() if p.dtype == torch.float64 else p.data.double()


def moves_without_gradient(params: list[Tensor], steps: int) -> None:
    larger([p for p in params if p.grad is None], steps)


def mixes(params: list[Tensor], steps: int) -> None:
    for p in params[1:]:
        p.add_(params[0].sum() + 0.5)


def doubles_gradients(params: list[Tensor], steps: int) -> None:
    for p in params:
        if p.grad is not None:
            p.grad.mul_(2).add_(1)


def overflows(params: list[Tensor], steps: int) -> None:
    for p in params:
        p.fill_(torch.inf)


def nothing(params: list[Tensor], steps: int) -> None:
    pass


def faster(op: Operation, params: Any, lr: float, **options: Any) -> Any:
    return op(params, 5 * lr, **options)


def one_rate(op: Operation, params: Any, lr: float, **options: Any) -> Any:
    return op(params, 0.125, **options)


def gradients(change: Callable[[Tensor], Tensor]) -> Fault:
    return change_any_result(lambda found: [change(g) for g in found])


def times_batches(op: Operation, loss_fn: Any, params: Any, micro_batches: Any) -> Any:
    batches = list(micro_batches)
    return [len(batches) * g for g in op(loss_fn, params, batches)]


def writes_grad(op: Operation, loss_fn: Any, params: Any, micro_batches: Any) -> Any:
    found = op(loss_fn, params, micro_batches)
    for p in params:
        p.grad.mul_(2)
    return found


OF_ALL = {
    "contract": after(other_dtype),
    "equation": after(larger),
    "sensitivity": instead(one_rate),
    "long_run": after(larger_later),
    "resume": after(nothing, Forgetful),
    "gaps": after(moves_without_gradient),
    "independence": after(mixes),
    "gradients_kept": after(doubles_gradients),
    "no_rate": after(larger),
    "half_precision": after(overflows),
}
OF_ADAM = {
    "constant_gradient": after(larger),
    "scale": instead_of("eps", 0.25),
    "step_bound": instead(faster),
    "eps": instead_of("eps", 0.5),
}

SPECIFIC: dict[str, Fault] = {
    **{
        f"{name}.{law}": fault
        for name in ("gradient_descent", "sgd_momentum", "adam", "adamw")
        for law, fault in OF_ALL.items()
    },
    **{f"{name}.{law}": fault for name in ("adam", "adamw") for law, fault in OF_ADAM.items()},
    "gradient_descent.sum": after(larger),
    "sgd_momentum.closed_form": instead_of("beta", 0.75),
    "sgd_momentum.first_velocity": instead_of("beta", 0.75),
    "sgd_momentum.gradient_weight": instead_of("beta", 0.75),
    "adam.l2": instead_of("weight_decay", 0.0),
    "adamw.decay": instead_of("weight_decay", 0.25),
    "warmup.linear_in_rate": known("SCH-03", "warmup"),
    "warmup_cosine.end": change_any_result(lambda x: x + 1e-3),
    "warmup_cosine.linear_in_rate": known("SCH-03", "warmup_cosine"),
    "noam.width": instead_of("d_model", 64),
    "noam.stretch": change_any_result(lambda x: x + 1e-3),
    "accumulate_gradients.partition": instead(times_batches),
    "accumulate_gradients.duplicates": instead(times_batches),
    "accumulate_gradients.no_tokens": gradients(lambda g: g + 1),
    "accumulate_gradients.unused_parameters": gradients(lambda g: g + 1),
    "accumulate_gradients.grad_untouched": instead(writes_grad),
}
