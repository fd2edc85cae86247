"""Faults of optimizers, schedules and accumulation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from veriformer.spec.edits import Edit
from veriformer.verify.formulas.stepper import Stepper
from veriformer.verify.mutants.combinators import Fault, Operation, change_arguments, edited, instead, instead_of
from veriformer.verify.targets.impl import reference


class _PowersBeforeBetas(Stepper):
    """Optimizer whose bias correction keeps the constructor's β after saved options are loaded."""

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        made_with = self.options["betas"]
        super().load_state_dict(saved)
        self.options["correcting"] = made_with


def _first_steps_alike(step: int, **options: Any) -> Any:
    return (max(1, step - 1),), options


def _first_step_at_full_rate(op: Operation, step: int, *, max_lr: float, **options: Any) -> float:
    rate: float = op(step, max_lr=max_lr, **options)
    return rate if step else max_lr


EPS_INSIDE: Edit = ("(xp.sqrt(v_hat) + eps)", "xp.sqrt(v_hat + eps)")
_CORRECTING = (
    ("    weight_decay: Any", "    correcting: Any = None,\n    weight_decay: Any"),
    ("betas=betas, eps", "betas=correcting or betas, eps"),
)
"""Edits of Adam and AdamW: further betas, for the correction alone."""


def _accumulating(*edits: Edit) -> dict[str, Fault]:
    return {"accumulate_gradients": edited("accumulate_gradients", *edits)}


FAULTS: dict[str, dict[str, Fault]] = {
    "OPT-02": {"adam": lambda op: reference.adamw},
    "OPT-03": {"adamw": edited("adamw", ("xp.asarray(lr) * weight_decay", "weight_decay"))},
    "OPT-05": {name: edited(name, EPS_INSIDE) for name in ("adam", "adamw")},
    # The averages of squares are divided by β₂^t, not by 1 − β₂^t.
    "OPT-06": {
        "adam": edited(
            "adam",
            (
                "x / weight_so_far(xp, beta, s.t) for",
                "x / (weight_so_far(xp, beta, s.t) if x is s.m else max(beta**s.t, 1e-300)) for",
            ),
        )
    },
    "OPT-09": {name: edited(name, *_CORRECTING, made=_PowersBeforeBetas) for name in ("adam", "adamw")},
    "OPT-13": {"sgd_momentum": edited("sgd_momentum", ("- v * lr", "- (g * (2 - 2 * beta) - v) * lr"))},
    "OPT-14": {
        "sgd_momentum": edited("sgd_momentum", ("xp.asarray(s.v), g, beta", "xp.asarray(s.v), g + s.v * beta, beta"))
    },
    "SCH-02": {"noam": change_arguments(_first_steps_alike)},
    "SCH-03": dict.fromkeys(("warmup", "warmup_cosine"), instead_of("max_lr", 1.0)),
    "SCH-07": {"warmup_cosine": instead(_first_step_at_full_rate)},
    "GA-02": _accumulating(
        ("xp.stack(parts)", "xp.stack([part / (n or 1) for part, n in zip(parts, counts, strict=True)])"),
        (" / tokens", ""),
    ),
    "GA-03": _accumulating(("sum(counts) or 1", "len(counts) * max(counts) or 1")),
    # The gradients of each micro-batch are clipped to a norm of 1.
    "CLIP-04": _accumulating(
        (
            "    tokens =",
            "    norms = [xp.sqrt(sum(xp.sum(g * g) for g in grads)) for grads in sums]\n"
            "    factors = [xp.minimum(1, 1 / norm) for norm in norms]\n"
            "    sums = [[g * factor for g in grads] for grads, factor in zip(sums, factors, strict=True)]\n"
            "    tokens =",
        )
    ),
}
