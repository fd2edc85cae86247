"""Gradient accumulation as a record: the squared errors of a linear model, in micro-batches of any size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.spec.optimization.accumulation import accumulate_gradients
from veriformer.spec.optimization.updates import zeros
from veriformer.verify.operation import Operation, Refusal
from veriformer.verify.operations.changes import nudged
from veriformer.verify.strategies import sizes, values
from veriformer.verify.trial import Arguments, Observation, Outcome, Trial


def _formula(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    w, b, *unused = a["params"]
    sums, counts = [[zeros(xp, p) for p in a["params"]]], [0]
    for batch in a["micro_batches"]:
        x, counts = batch[:, :-1], [*counts, batch.shape[0]]
        error = x @ w + b - batch[:, -1]
        sums.append([(error * 2) @ x, xp.sum(error * 2), *[zeros(xp, p) for p in unused]])
    found: list[Any] = accumulate_gradients(xp, sums, counts)
    return found


def draw_params(trial: Trial, rng: np.random.Generator) -> list[torch.Tensor]:
    """w, b, and up to two parameters that the loss does not use."""
    shapes = [(trial.draw(sizes(1, 4)),), (), *[(2, 3), ()][: trial.draw(sizes(0, 2))]]
    return [trial.tensor(rng.standard_normal(shape)) for shape in shapes]


def draw_accumulation(trial: Trial) -> Arguments:
    """Micro-batches from no token to many, seldom of one size, or none at all."""
    kind = trial.draw(values())
    params = draw_params(trial, kind.rng)
    counts = trial.draw(st.lists(sizes(0, 5), min_size=0, max_size=5))
    d = params[0].shape[0]
    rows = kind.array(sum(counts) + 1, d + 1)[:-1] * kind.rng.choice([1.0, 3.0])
    batches = torch.split(trial.tensor(rows), counts) if counts else ()
    a: dict[str, Any] = {"params": params, "micro_batches": [batch.clone() for batch in batches]}
    return a | trial.option("counted", None, "int64", "float32", "int32") | trial.option("lazily", None, True)


def _ordinary(trial: Trial) -> Arguments:
    params = [trial.tensor([1.0, -0.5]), trial.tensor(0.25)]
    batches = [[[1.0, 2.0, 0.5], [0.0, -1.0, 1.0]], [[2.0, 0.5, -1.0]]]
    return {"params": params, "micro_batches": [trial.tensor(batch) for batch in batches]}


def _refusals(trial: Trial) -> Iterator[Refusal]:
    good = _ordinary(trial)
    yield Refusal("no parameters", {**good, "params": None}, ("params",))
    yield Refusal("no micro-batches", {**good, "micro_batches": None}, ("micro_batches",))
    yield Refusal("no loss", {**good, "loss_fn": None}, ("loss_fn",))
    yield Refusal("a number for a loss", {**good, "loss_fn": 1.0}, ("loss_fn",))


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    kind = trial.draw(values(("gaussian", "one-signed")))
    params = [trial.tensor(kind.rng.standard_normal(shape)) for shape in ((2,), ())]
    first, second = trial.tensor(kind.array(2, 3)), trial.tensor(1.0 + kind.array(3, 3))
    a: Arguments = {"params": params, "micro_batches": [first, second]}
    return a, {
        "w": {**a, "params": [nudged(trial, params[0], kind.rng), params[1]]},
        "the first micro-batch": {**a, "micro_batches": [nudged(trial, first, kind.rng), second]},
        "the last micro-batch": {**a, "micro_batches": [first, nudged(trial, second, kind.rng)]},
        "the number of micro-batches": {**a, "micro_batches": [first]},
    }


def _parts(outcome: Outcome, arguments: Arguments) -> list[Observation]:
    return [outcome.item(0, i) for i in range(len(arguments["params"]))]


ACCUMULATE_GRADIENTS = Operation(
    name="accumulate_gradients",
    draw=draw_accumulation,
    ordinary=_ordinary,
    formulas=(_formula,),
    refusals=_refusals,
    changes=_changes,
    parts=_parts,
)
