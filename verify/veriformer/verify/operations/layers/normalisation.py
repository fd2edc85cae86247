"""Draws shared by the records of both normalisations: rows of many kinds, long and bad ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.judging.op_info import Index, InvalidCall
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.changes import perturbed
from veriformer.verify.strategies import choice, leading_shapes, sizes, values

_WIDTHS = (3, 4, 5, 6, 7, 8, 4, 6, 8, 5, 2, 1)
"""Rows of two are ±1 whatever they hold, and rows of one are nothing: seldom drawn."""


def options_of(a: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``eps``, where it is given."""
    return {"eps": a["eps"]} if "eps" in a else {}


def _leading(trial: Trial, d: int) -> tuple[int, ...]:
    """Any leading axes; or the last as long as the rows, so that both could be taken for them; or no rows at all."""
    kind = trial.draw(choice("any", "any", "any", "square", "square", "none"))
    if kind == "any":
        return trial.draw(leading_shapes())
    return (*trial.draw(leading_shapes(1)), d if kind == "square" else 0)


def draw_rows(trial: Trial, parameters: tuple[str, ...]) -> dict[str, Any]:
    """Draw rows of many kinds, each parameter or none of them, and any ``eps``."""
    large = trial.rows((2, 10000))
    d = trial.fitted("d", trial.draw(choice(*_WIDTHS)) if large is None else large[-1])
    lead = _leading(trial, d) if large is None else large[:-1]
    x = trial.draw(values()).array(*lead, d)
    arguments: dict[str, Any] = {"x": trial.tensor(x)}
    for name in parameters:
        if trial.draw(choice(False, True, True, True)):
            arguments[name] = trial.given(name, trial.draw(values()).array(d))
    eps = trial.draw(choice(None, 1e-5, 0.01, 1.0, 1e-12, 0.0))
    return trial.supported(arguments if eps is None else {**arguments, "eps": eps})


def one_slice(trial: Trial, draw: Callable[[Trial], Arguments]) -> tuple[Arguments, Arguments, dict[str, Index]]:
    """Draw a call, and one index of its first axis alone."""
    whole = dict(draw(trial))
    whole["x"] = whole["x"][None] if whole["x"].ndim == 1 else whole["x"]
    trial.assume(whole["x"].shape[0] > 0)
    i = trial.draw(st.integers(0, whole["x"].shape[0] - 1))
    index = (slice(i, i + 1),)
    return whole, {**whole, "x": whole["x"][index]}, {"result": index, "x": index}


def changed_rows(trial: Trial, parameters: tuple[str, ...]) -> tuple[Arguments, dict[str, Arguments]]:
    """Draw a call, and the same with each of its arguments changed."""
    n, d = trial.draw(sizes(1, 4)), trial.fitted("d", trial.draw(sizes(3)))
    kind = trial.draw(values(("gaussian", "one-signed", "offset")))
    x = trial.tensor(kind.array(n, d))
    a: Arguments = {"x": x, **{name: trial.given(name, 1.0 + np.arange(d) / d) for name in parameters}}
    changed = {name: {**a, name: perturbed(trial, a[name], kind.rng)} for name in a}
    return a, changed | {"eps": {**a, "eps": float(x.double().square().mean())}}


def many_rows(trial: Trial, parameters: tuple[str, ...], rows: tuple[int, int]) -> Arguments:
    """Draw many rows, so that the sums over them show how they were taken."""
    trial.only_large()
    shape = trial.rows((24, 2000), rows, least_rank=1)
    assert shape is not None
    kind = trial.draw(values(("gaussian", "one-signed", "spread")))
    weights = trial.draw(values(("gaussian", "one-signed", "spread")))
    made = {name: trial.given(name, weights.array(shape[-1])) for name in parameters}
    return {"x": trial.tensor(kind.array(*shape)), **made}


def ordinary_rows(trial: Trial) -> Arguments:
    """Draw Gaussian rows."""
    lead, d = trial.draw(leading_shapes()), trial.fitted("d", trial.draw(sizes(2)))
    return {"x": trial.tensor(trial.draw(values(("gaussian",))).array(*lead, d))}


def bad_rows(trial: Trial, parameters: tuple[str, ...]) -> Iterator[InvalidCall]:
    """Yield rows and parameters that both norms refuse."""
    n, d = trial.draw(sizes(2)), trial.draw(sizes(2))
    x = trial.tensor(trial.draw(values(("gaussian",))).array(n, d))
    other = torch.float32 if trial.dtype is torch.float64 else torch.float64
    yield InvalidCall("no rows", {"x": None}, ("x",))
    yield InvalidCall("an empty axis", {"x": x[:, :0]}, ("x",))
    yield InvalidCall("a negative eps", {"x": x, "eps": -1e-3}, ("eps",))
    yield InvalidCall("a bool for a number", {"x": x, "eps": True}, ("eps",))
    for name in parameters:
        yield InvalidCall(f"a {name} too long", {"x": x, name: trial.tensor(np.ones(d + 1))}, (name, "x"))
        yield InvalidCall(f"a {name} of one for all", {"x": x, name: trial.tensor(np.ones(1))}, (name, "x"))
        yield InvalidCall(f"a {name} per row", {"x": x, name: trial.tensor(np.ones((n, d)))}, (name, "x"))
        yield InvalidCall(f"a {name} of another dtype", {"x": x, name: torch.ones(d, dtype=other)}, (name, "x"))
