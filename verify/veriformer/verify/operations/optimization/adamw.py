"""AdamW: its record and its laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from veriformer.spec.arithmetic import RunningError
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.family import check
from veriformer.verify.operations.optimization import optimizer_formulas as formulas
from veriformer.verify.operations.optimization.adam_laws import draw_adaptive, laws_of_adam
from veriformer.verify.operations.optimization.optimizer_laws import IN_TWO_FORMATS, ends_at
from veriformer.verify.operations.optimization.optimizers import (
    ADAM_CHANGES,
    BAD_ADAM_OPTIONS,
    changes_of,
    decay_place,
    draw_adam_options,
    draw_run,
    record_of,
    refusals_of,
)
from veriformer.verify.strategies import choice, values


def draw_adamw(trial: Trial) -> Arguments:
    """Draw a run with any options; without ε every gradient is away from 0."""
    return draw_adam_options(trial, draw_run("adamw", trial), (0.1, None, 0.0, 1.0, 2.0))


ADAMW = record_of(
    "adamw",
    draw_adamw,
    formulas.adamw,
    formulas.adamw_by_differences,
    invalid_calls=refusals_of("adamw", BAD_ADAM_OPTIONS),
    argument_perturbations=changes_of("adamw", **ADAM_CHANGES),
    convention_kwargs=decay_place,
)


def _decay(trial: Trial) -> None:
    a = draw_adaptive(trial, ADAMW, decay=False)
    rng = trial.draw(values()).rng
    a |= {"grads": [torch.zeros_like(g) for g in a["grads"]], "weight_decay": trial.draw(choice(0.5, 0.01, 2.0))}
    a["params"] = [trial.tensor(rng.standard_normal(p.shape) + 2.0) for p in a["params"]]

    def law(xp: RunningError, lifted: Mapping[str, Any], i: int) -> Any:
        theta = lifted["params"][i]
        for _ in range(len(a["grads"][0])):
            theta = theta * (1 - xp.asarray(a["lr"]) * a["weight_decay"])
        return theta

    ends_at(ADAMW, trial, a, law)


CHECKS = (*laws_of_adam(ADAMW), check("adamw.decay", _decay, **IN_TWO_FORMATS))
