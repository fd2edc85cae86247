"""Layer normalisation and root-mean-square normalisation as records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.spec.layer_norm import layer_norm, layer_norm_vjp
from veriformer.spec.rms_norm import rms_norm, rms_norm_vjp
from veriformer.verify.operation import Operation, Refusal
from veriformer.verify.strategies import leading_shapes, sizes, values
from veriformer.verify.trial import Arguments, Trial


def _options(a: Mapping[str, Any]) -> dict[str, Any]:
    return {"eps": a["eps"]} if "eps" in a else {}


def _layer_norm(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [layer_norm(xp, a["x"], a.get("weight"), a.get("bias"), **_options(a))]


def _layer_norm_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    found = layer_norm_vjp(xp, a["x"], a.get("weight"), a.get("bias"), g, **_options(a))
    return dict(zip(("x", "weight", "bias"), found, strict=True))


def _rms_norm(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [rms_norm(xp, a["x"], a.get("weight"), **_options(a))]


def _rms_norm_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return dict(zip(("x", "weight"), rms_norm_vjp(xp, a["x"], a.get("weight"), g, **_options(a)), strict=True))


def _draw(trial: Trial, parameters: tuple[str, ...]) -> dict[str, Any]:
    lead, d = trial.draw(leading_shapes()), trial.draw(sizes(1, 8))
    x = trial.draw(values()).array(*lead, d)
    arguments: dict[str, Any] = {"x": trial.tensor(x)}
    for name in parameters:
        if trial.draw(st.booleans()):
            arguments[name] = trial.tensor(trial.draw(values()).array(d))
    eps = trial.draw(st.sampled_from([None, 1e-5, 0.01, 1.0, 1e-12, 0.0]))
    return arguments if eps is None else {**arguments, "eps": eps}


def _spread(x: torch.Tensor) -> float:
    """The smallest difference between largest and smallest entry of a row."""
    rows = x.double()
    return float((rows.amax(-1) - rows.amin(-1)).min())


def draw_layer_norm(trial: Trial) -> Arguments:
    """Rows with weight and bias, either, or neither; ``eps`` left out, given, or 0 where no row is constant."""
    arguments = _draw(trial, ("weight", "bias"))
    if arguments.get("eps") == 0.0 and not _spread(arguments["x"]):
        arguments["eps"] = 0.01
    return arguments


def draw_rms_norm(trial: Trial) -> Arguments:
    """Rows with or without weight; ``eps`` left out, given, or 0 where no row is zero."""
    arguments = _draw(trial, ("weight",))
    if arguments.get("eps") == 0.0 and not bool(arguments["x"].abs().amax(-1).gt(0).all()):
        arguments["eps"] = 0.01
    return arguments


def _ordinary(trial: Trial) -> Arguments:
    lead, d = trial.draw(leading_shapes()), trial.draw(sizes(2))
    return {"x": trial.tensor(trial.draw(values(("gaussian",))).array(*lead, d))}


def _bad_rows(trial: Trial, parameters: tuple[str, ...]) -> Iterator[Refusal]:
    n, d = trial.draw(sizes(2)), trial.draw(sizes(2))
    x = trial.tensor(trial.draw(values(("gaussian",))).array(n, d))
    other = torch.float32 if trial.dtype is torch.float64 else torch.float64
    yield Refusal("no rows", {"x": None}, ("x",))
    yield Refusal("an empty axis", {"x": x[:, :0]}, ("x",))
    yield Refusal("a negative eps", {"x": x, "eps": -1e-3}, ("eps",))
    for name in parameters:
        yield Refusal(f"a {name} too long", {"x": x, name: trial.tensor(np.ones(d + 1))}, (name,))
        yield Refusal(f"a {name} of one for all", {"x": x, name: trial.tensor(np.ones(1))}, (name,))
        yield Refusal(f"a {name} per row", {"x": x, name: trial.tensor(np.ones((n, d)))}, (name,))
        yield Refusal(f"a {name} of another dtype", {"x": x, name: torch.ones(d, dtype=other)}, (name, "x"))


LAYER_NORM = Operation(
    name="layer_norm",
    draw=draw_layer_norm,
    ordinary=_ordinary,
    formulas=(_layer_norm,),
    vjps=(_layer_norm_vjp,),
    inputs=("x", "weight", "bias"),
    refusals=lambda trial: _bad_rows(trial, ("weight", "bias")),
)

RMS_NORM = Operation(
    name="rms_norm",
    draw=draw_rms_norm,
    ordinary=_ordinary,
    formulas=(_rms_norm,),
    vjps=(_rms_norm_vjp,),
    inputs=("x", "weight"),
    refusals=lambda trial: _bad_rows(trial, ("weight",)),
)
