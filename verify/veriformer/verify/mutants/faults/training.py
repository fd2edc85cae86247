"""Faults of optimizers, schedules and accumulation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from veriformer.verify.mutants.combinators import Fault, Operation, given, instead, instead_of, replaced_by
from veriformer.verify.mutants.staged_reference.optimizers import (
    DECOUPLED,
    Adam,
    Betas,
    Momentum,
    Stepper,
    gradient_alone,
    stepping,
)
from veriformer.verify.mutants.staged_reference.training import Accumulation, Gradients
from veriformer.verify.targets.impl import reference


def _decayed_by_itself(theta: Tensor, lr: float, decay: float) -> Tensor:
    return theta * (1 - decay)


def _eps_inside(v_hat: Tensor, eps: float, beta_2: float, t: int) -> Tensor:
    return (v_hat + eps).sqrt()


def _one_minus_correction(m: Tensor, v: Tensor, betas: Betas, t: int) -> tuple[Tensor, Tensor]:
    return m / (1 - betas[0] ** t), v / max(betas[1] ** t, 1e-300)


class _PowersBeforeBetas(Stepper):
    """Saved options are restored after what was computed from the options that it was made with."""

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        made_with = self.options["betas"]
        super().load_state_dict(saved)
        self.options["correcting"] = made_with


def _ascent_along_momentum(v: Tensor, g: Tensor, beta: float) -> Tensor:
    return (1 - beta) * g - (v - (1 - beta) * g)


def _look_ahead_first(v: Tensor, g: Tensor, beta: float) -> Tensor:
    return beta * v + (1 - beta) * (g + beta * v)


def _first_steps_alike(step: int, **options: Any) -> Any:
    return (max(1, step - 1),), options


def _first_step_at_full_rate(op: Operation, step: int, *, max_lr: float, **options: Any) -> float:
    rate: float = op(step, max_lr=max_lr, **options)
    return rate if step else max_lr


def _mean_of_batch(grads: Gradients, count: int) -> Gradients:
    return [g / max(1, count) for g in grads]


def _as_summed(sums: Gradients, counts: list[int]) -> Gradients:
    return sums


def _as_if_all_were_full(sums: Gradients, counts: list[int]) -> Gradients:
    return [total / max(1, len(counts) * max(counts, default=1)) for total in sums]


def _clipped(grads: Gradients, count: int) -> Gradients:
    norm = math.sqrt(sum(float(g.double().square().sum()) for g in grads))
    return [g * min(1.0, 1.0 / norm) if norm else g for g in grads]


FAULTS: dict[str, dict[str, Fault]] = {
    "OPT-02": {"adam": lambda op: reference.adamw},
    "OPT-03": {"adamw": replaced_by(stepping(Adam(pull=gradient_alone, shrink=_decayed_by_itself)))},
    "OPT-05": {
        "adam": replaced_by(stepping(Adam(denominator=_eps_inside))),
        "adamw": replaced_by(stepping(Adam(**DECOUPLED, denominator=_eps_inside))),
    },
    "OPT-06": {"adam": replaced_by(stepping(Adam(correct=_one_minus_correction)))},
    "OPT-09": {
        "adam": replaced_by(stepping(Adam(), _PowersBeforeBetas)),
        "adamw": replaced_by(stepping(Adam(**DECOUPLED), _PowersBeforeBetas)),
    },
    "OPT-13": {"sgd_momentum": replaced_by(stepping(Momentum(direction=_ascent_along_momentum)))},
    "OPT-14": {"sgd_momentum": replaced_by(stepping(Momentum(average=_look_ahead_first)))},
    "SCH-02": {"noam": given(_first_steps_alike)},
    "SCH-03": dict.fromkeys(("warmup", "warmup_cosine"), instead_of("max_lr", 1.0)),
    "SCH-07": {"warmup_cosine": instead(_first_step_at_full_rate)},
    "GA-02": {"accumulate_gradients": replaced_by(Accumulation(part=_mean_of_batch, mean=_as_summed))},
    "GA-03": {"accumulate_gradients": replaced_by(Accumulation(mean=_as_if_all_were_full))},
    "CLIP-04": {"accumulate_gradients": replaced_by(Accumulation(part=_clipped))},
}
