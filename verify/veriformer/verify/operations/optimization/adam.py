"""Adam: its record and its laws."""

from __future__ import annotations

from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.equality import equal
from veriformer.verify.laws.family import check
from veriformer.verify.operations.optimization import optimizer_formulas as formulas
from veriformer.verify.operations.optimization.adam_laws import laws_of_adam
from veriformer.verify.operations.optimization.optimizer_laws import IN_TWO_FORMATS
from veriformer.verify.operations.optimization.optimizers import (
    ADAM_CHANGES,
    BAD_ADAM_OPTIONS,
    changes_of,
    draw_adam_options,
    draw_run,
    eps_place,
    record_of,
    refusals_of,
)
from veriformer.verify.strategies import choice, values


def draw_adam(trial: Trial) -> Arguments:
    """Draw a run with any options; without ε every gradient is away from 0, and nothing is added to it."""
    run = draw_run("adam", trial)
    return draw_adam_options(trial, run, (None, 0.5, 0.01, 1.0, 2.0))


ADAM = record_of(
    "adam",
    draw_adam,
    formulas.adam,
    formulas.adam_by_differences,
    invalid_calls=refusals_of("adam", BAD_ADAM_OPTIONS),
    argument_perturbations=changes_of("adam", **ADAM_CHANGES),
    convention_kwargs=eps_place,
)


def _l2(trial: Trial) -> None:
    rng = trial.draw(values()).rng
    p, g = (trial.tensor(rng.integers(1, 9, 4) * rng.choice([-0.25, 0.25], 4)) for _ in range(2))
    decay = trial.draw(choice(0.5, 2.0, 0.25, 1.0))
    a = {"params": [p], "lr": 0.125, "optimizer": "adam", "eps": 0.25}
    decayed = {**a, "grads": [g[None]], "weight_decay": decay}
    pulled = {**a, "grads": [(g + decay * p)[None]]}
    one, other = (ADAM.parts(trial.call(x), x)[0] for x in (decayed, pulled))
    of_one, of_other = (ADAM.exact(trial, x)[0] for x in (decayed, pulled))
    equal(trial, one, other, of_one, of_other, "a first step with decay")


CHECKS = (*laws_of_adam(ADAM), check("adam.l2", _l2, **IN_TWO_FORMATS))
