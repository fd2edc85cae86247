"""Temperature scaling as a record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np

from veriformer.spec.generation.temperature_scale import temperature_scale, temperature_scale_vjp
from veriformer.verify.operation import Formula, Index, Operation, Refusal, Vjp
from veriformer.verify.operations.changes import nudged
from veriformer.verify.operations.scores import SOFTMAX, long_scores
from veriformer.verify.strategies import choice, leading_shapes, sizes, values, widths
from veriformer.verify.trial import Arguments, Trial


def _scaled(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [temperature_scale(xp, a["logits"], a["temperature"])]


def _scaled_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"logits": temperature_scale_vjp(xp, a["logits"], a["temperature"], g)}


def _quotient(xp: Any, a: Mapping[str, Any]) -> Any:
    """z / T, as it is usually written; only where T is far from underflow, for it overflows below."""
    z = a["logits"]
    return (z if a["temperature"] >= 2.0**-10 else z - xp.max(z, axis=-1, keepdims=True)) / a["temperature"]


def _formula(softmax: Formula) -> Formula:
    return lambda xp, a: softmax(xp, {"z": _quotient(xp, a)})


def _vjp(softmax_vjp: Vjp) -> Vjp:
    return lambda xp, a, g: {"logits": softmax_vjp(xp, {"z": _quotient(xp, a)}, g)["z"] / a["temperature"]}


def draw_temperature(trial: Trial, least_rank: int = 0) -> Arguments:
    """Scores of rank up to 4, some at −∞, and temperatures on both sides of 1."""
    lead = trial.draw(leading_shapes(3, 3))
    lead = lead if len(lead) >= least_rank else (2,) * least_rank
    kind = trial.draw(values())
    z = kind.array(*lead, trial.draw(widths()))
    if trial.draw(st.integers(0, 3)) == 3:
        hidden = kind.rng.random(z.shape) < 0.4
        np.put_along_axis(hidden, kind.rng.integers(0, z.shape[-1], (*lead, 1)), False, -1)
        z = np.where(hidden, -np.inf, z)
    return {
        "logits": trial.tensor(z),
        "temperature": trial.draw(choice(1.0, 0.5, 2, 0.7, 1.5, 0.125, 5.0, 0.01, 100.0)),
    }


def _ordinary(trial: Trial) -> Arguments:
    kind = trial.draw(values(("gaussian",)))
    return {"logits": trial.tensor(kind.array(2, trial.draw(sizes(2)))), "temperature": 1.5}


def _slice(trial: Trial) -> tuple[Arguments, Arguments, dict[str, Index]]:
    whole = draw_temperature(trial, least_rank=1)
    i = trial.draw(st.integers(0, whole["logits"].shape[0] - 1))
    index = (slice(i, i + 1),)
    return whole, {**whole, "logits": whole["logits"][index]}, {"result": index, "logits": index}


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    kind = trial.draw(values(("gaussian", "offset", "one-signed")))
    a: Arguments = {"logits": trial.tensor(kind.array(2, trial.draw(sizes(2)))), "temperature": 1.0}
    return a, {
        "logits": {**a, "logits": nudged(trial, a["logits"], kind.rng)},
        "temperature": {**a, "temperature": 4.0},
    }


def _bulk(trial: Trial) -> Arguments:
    z = 2.0 * trial.draw(values(("gaussian", "one-signed", "ties"))).array(40, 60)
    return {"logits": trial.tensor(z), "temperature": trial.draw(choice(1.0, 0.7, 2.0))}


def _long(trial: Trial) -> Arguments:
    _, z = long_scores(trial)
    return {"logits": trial.tensor(z), "temperature": trial.draw(choice(0.5, 2.0))}


def _refusals(trial: Trial) -> Iterator[Refusal]:
    good = _ordinary(trial)
    yield Refusal("no scores", {**good, "logits": None}, ("logits",))
    yield Refusal("no class", {**good, "logits": good["logits"][..., :0]}, ("logits",))
    bad = ((0.0, "0"), (-1.0, "negative"), (math.nan, "NaN"), (True, "a bool"), (None, "missing"), (-0.0, "minus 0"))
    for temperature, what in bad:
        yield Refusal(f"a temperature that is {what}", {**good, "temperature": temperature}, ("temperature",))


TEMPERATURE_SCALE = Operation(
    name="temperature_scale",
    draw=draw_temperature,
    ordinary=_ordinary,
    formulas=(_scaled, *map(_formula, SOFTMAX.formulas)),
    vjps=(_scaled_vjp, *map(_vjp, SOFTMAX.vjps[1:])),
    inputs=("logits",),
    refusals=_refusals,
    part=_slice,
    changes=_changes,
    bulk=_bulk,
    long=_long,
    forms=("fp32", "bf16"),
)
