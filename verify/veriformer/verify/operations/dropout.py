"""Dropout as a record: what is certain of it, and, given the mask, the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from veriformer.spec.layers.dropout import dropout, dropout_vjp
from veriformer.verify.operation import Operation, Refusal
from veriformer.verify.script import Seed
from veriformer.verify.strategies import choice, seeds, shapes, sizes, values
from veriformer.verify.trial import Arguments, Trial


def _keep(a: Mapping[str, Any], shape: tuple[int, ...]) -> Any:
    """The mask: known to the check, or without doubt."""
    if "keep" in a:
        return a["keep"]
    return np.zeros(shape, dtype=bool) if a.get("training", True) and a["p"] == 1 else None


def _dropout(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [dropout(xp, a["x"], a["p"], keep=_keep(a, a["x"].shape))]


def _by_factor(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """x · (1 / (1 − p)) on what is kept."""
    keep = _keep(a, a["x"].shape)
    return [
        a["x"] if keep is None else xp.where(keep, a["x"], 0) * (1 if a["p"] == 1 else 1 / (1 - xp.asarray(a["p"])))
    ]


def _dropout_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"x": dropout_vjp(xp, a["x"], a["p"], g, keep=_keep(a, a["x"].shape))}


def _by_factor_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"x": _by_factor(xp, {**a, "x": g})[0]}


def draw_dropout(trial: Trial) -> Arguments:
    """Calls of which nothing is left to chance: not in training, or with p 0 or 1."""
    x = trial.tensor(trial.draw(values()).array(*trial.draw(shapes(1, 4, 4))))
    cases = ((False, 0.4), (None, 0.0), (True, 0.0), (False, 1.0), (None, 1.0), (True, 1.0), (False, 0.9))
    training, p = trial.draw(choice(*cases))
    given = {"generator": Seed(trial.draw(seeds()))} if trial.draw(choice(False, True)) else {}
    return {"x": x, "p": p, **({} if training is None else {"training": training}), **given}


def _ordinary(trial: Trial) -> Arguments:
    x = trial.draw(values(("gaussian",))).array(trial.draw(sizes(1, 3)), trial.draw(sizes(2)))
    return {"x": trial.tensor(x), "p": 0.4, **trial.option("training", False)}


def _refusals(trial: Trial) -> Iterator[Refusal]:
    x = _ordinary(trial)["x"]
    yield Refusal("no tensor", {"x": None, "p": 0.5}, ("x",))
    for p in (-0.1, 1.1, float("nan"), True):
        yield Refusal(f"a probability of {p}", {"x": x, "p": p}, ("p",))
    yield Refusal("a probability above 1 outside training", {"x": x, "p": 1.5, "training": False}, ("p",))
    yield Refusal("no probability", {"x": x, "p": None}, ("p",))
    yield Refusal("a number for a generator", {"x": x, "p": 0.5, "generator": 3}, ("generator",))


DROPOUT = Operation(
    name="dropout",
    draw=draw_dropout,
    ordinary=_ordinary,
    formulas=(_dropout, _by_factor),
    vjps=(_dropout_vjp, _by_factor_vjp),
    inputs=("x",),
    refusals=_refusals,
    forms=("fp32", "bf16"),
)
