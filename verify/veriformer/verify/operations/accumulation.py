"""Gradient accumulation as a record: the squared errors of a linear model, in micro-batches of any size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.spec.optimization.accumulate_gradients import accumulate_gradients
from veriformer.spec.optimization.updates import zeros
from veriformer.verify.operation import Operation, Refusal
from veriformer.verify.operations.changes import nudged
from veriformer.verify.strategies import choice, sizes, values
from veriformer.verify.trial import Arguments, Observation, Outcome, Trial


def _formula(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    w, b, *unused = a["params"]
    sums, counts = [[zeros(xp, p) for p in a["params"]]], [0]
    masks = a.get("masks", [np.ones(batch.shape[0], dtype=bool) for batch in a["micro_batches"]])
    for batch, mask in zip(a["micro_batches"], masks, strict=True):
        x, counts = batch[:, :-1], [*counts, int(mask.sum())]
        error = xp.where(mask, x @ w + b - batch[:, -1], 0)
        sums.append([(error * 2) @ x, xp.sum(error * 2), *[zeros(xp, p) for p in unused]])
    found: list[Any] = accumulate_gradients(xp, sums, counts)
    return found


def draw_params(trial: Trial, rng: np.random.Generator) -> list[torch.Tensor]:
    """w, b, and up to two parameters that the loss does not use."""
    shapes = [(trial.draw(sizes(1, 4)),), (), *[(2, 3), ()][: trial.draw(sizes(0, 2))]]
    return [trial.tensor(rng.standard_normal(shape)) for shape in shapes]


def draw_accumulation(trial: Trial) -> Arguments:
    """Micro-batches from no token to many, seldom of one size, or none at all; sometimes large, or masked."""
    kind = trial.draw(values())
    params = draw_params(trial, kind.rng)
    a: dict[str, Any] = {"params": params}
    if trial.draw(choice(False, False, True)):
        a["micro_batches"] = _large(trial, params, kind.rng)
    else:
        counts = trial.draw(st.lists(sizes(0, 5), min_size=0, max_size=5))
        rows = kind.array(sum(counts) + 1, len(params[0]) + 1)[:-1] * kind.rng.choice([1.0, 3.0])
        a["micro_batches"] = [batch.clone() for batch in torch.split(trial.tensor(rows), counts)] if counts else []
    if trial.draw(choice(False, True)):
        a["masks"] = [_mask(kind.rng, len(batch)) for batch in a["micro_batches"]]
    return a | trial.option("counted", None, "int64", "float32", "int32") | trial.option("lazily", None, True)


def _large(trial: Trial, params: list[torch.Tensor], rng: np.random.Generator) -> list[torch.Tensor]:
    """Tokens whose gradients have one sign and a sum that leaves the range of fp16, in which every batch's own stays.

    Each is 2 (x · w + b − y) x with x up to 2^11, and y so far from the rest that the losses stay small.
    """
    d, n = len(params[0]), int(rng.integers(16, 24))
    params[0] = trial.tensor(2.0**-11 * rng.uniform(-1.0, 1.0, d) / d)
    params[1] = trial.tensor(rng.uniform(-1.0, 1.0))
    rows = np.concatenate([2.0**11 * rng.uniform(0.5, 1.0, (n, d)), -rng.uniform(4.0, 5.0, (n, 1))], axis=1)
    return [batch.clone() for batch in torch.split(trial.tensor(rows), 2)]


def _mask(rng: np.random.Generator, tokens: int) -> torch.Tensor:
    """Which tokens of a micro-batch count: some, all or none."""
    return torch.as_tensor(rng.random(tokens) < rng.choice([0.5, 1.0, 0.0]))


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
    first, second = trial.tensor(kind.array(2, 3)), trial.tensor(1.0 + kind.array(1, 3))
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
