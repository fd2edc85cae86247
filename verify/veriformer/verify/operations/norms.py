"""Layer normalisation and root-mean-square normalisation as records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.spec.layer_norm import layer_norm, layer_norm_vjp
from veriformer.spec.points import sum_to_shape
from veriformer.spec.rms_norm import rms_norm, rms_norm_vjp
from veriformer.verify.operation import Index, Operation, Refusal
from veriformer.verify.operations.changes import nudged
from veriformer.verify.strategies import choice, leading_shapes, long_shapes, sizes, values
from veriformer.verify.trial import Arguments, Trial

_MANY_ROWS = 500
_FEW_ROWS = 30
"""PyTorch's layer norm on a CPU sums the gradients of weight and bias in the half itself (pytorch/pytorch#188375):
their error grows with the root of the number of rows, to nine times the plain formula's at 500, and more than three
times at 30 where it is the bias's."""

_WIDTHS = (3, 4, 5, 6, 7, 8, 4, 6, 8, 5, 2, 1)
"""Rows of two are ±1 whatever they hold, and rows of one are nothing: seldom drawn."""


def _options(a: Mapping[str, Any]) -> dict[str, Any]:
    return {"eps": a["eps"]} if "eps" in a else {}


def _layer_norm(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [layer_norm(xp, a["x"], a.get("weight"), a.get("bias"), **_options(a))]


def _layer_norm_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    found = layer_norm_vjp(xp, a["x"], a.get("weight"), a.get("bias"), g, **_options(a))
    return dict(zip(("x", "weight", "bias"), found, strict=True))


def _moments(xp: Any, a: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """μ, x − μ and 1 / √(σ² + ε) with σ² = E[x²] − E[x]²: right over the reals, and the worse the larger the mean."""
    x, d = a["x"], a["x"].shape[-1]
    mean = xp.sum(x, axis=-1, keepdims=True) / d
    variance = xp.sum(x * x, axis=-1, keepdims=True) / d - mean * mean
    return mean, x - mean, 1 / xp.sqrt(variance + a.get("eps", 1e-5))


def layer_norm_one_pass(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Layer normalisation with the one-pass variance."""
    _, centred, r = _moments(xp, a)
    y = centred * r if a.get("weight") is None else centred * r * a["weight"]
    return [y if a.get("bias") is None else y + a["bias"]]


def layer_norm_one_pass_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """The gradient as the chain rule gives it for the one-pass variance: σ² passes on 2 x / d, and −2 μ to the mean."""
    mean, centred, r = _moments(xp, a)
    x, d = a["x"], a["x"].shape[-1]
    h = g if a.get("weight") is None else g * a["weight"]
    d_variance = xp.sum(h * centred, axis=-1, keepdims=True) * (r * r * r) / -2
    d_mean = -(xp.sum(h * r, axis=-1, keepdims=True) + mean * d_variance * 2)
    found = {"x": h * r + x * (d_variance * 2 / d) + d_mean / d}
    if a.get("weight") is not None:
        found["weight"] = sum_to_shape(xp, g * (centred * r), a["weight"].shape)
    if a.get("bias") is not None:
        found["bias"] = sum_to_shape(xp, g, a["bias"].shape)
    return found


def _rms_norm(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [rms_norm(xp, a["x"], a.get("weight"), **_options(a))]


def _rms_norm_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return dict(zip(("x", "weight"), rms_norm_vjp(xp, a["x"], a.get("weight"), g, **_options(a)), strict=True))


def _rms_norm_vjp_by_chain(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """h r + x · 2 dσ² / d with dσ² = −r³ Σ h x / 2, as the chain rule gives it for x · r."""
    x, d = a["x"], a["x"].shape[-1]
    r = 1 / xp.sqrt(xp.sum(x * x, axis=-1, keepdims=True) / d + a.get("eps", 1e-6))
    h = g if a.get("weight") is None else g * a["weight"]
    d_square = xp.sum(h * x, axis=-1, keepdims=True) * (r * r * r) / -2
    found = {"x": h * r + x * (d_square * 2 / d)}
    if a.get("weight") is not None:
        found["weight"] = sum_to_shape(xp, g * (x * r), a["weight"].shape)
    return found


def _leading(trial: Trial, d: int) -> tuple[int, ...]:
    """Any leading axes; or the last as long as the rows, so that both could be taken for them; or no rows at all."""
    kind = trial.draw(choice("any", "any", "any", "square", "square", "none"))
    if kind == "any":
        return trial.draw(leading_shapes())
    return (*trial.draw(leading_shapes(1)), d if kind == "square" else 0)


def _draw(trial: Trial, parameters: tuple[str, ...]) -> dict[str, Any]:
    d = trial.fitted("d", trial.draw(choice(*_WIDTHS)))
    lead = _leading(trial, d)
    x = trial.draw(values()).array(*lead, d)
    arguments: dict[str, Any] = {"x": trial.tensor(x)}
    for name in parameters:
        if trial.draw(choice(False, True, True, True)):
            arguments[name] = trial.tensor(trial.draw(values()).array(d))
    eps = trial.draw(choice(None, 1e-5, 0.01, 1.0, 1e-12, 0.0))
    return trial.supported(arguments if eps is None else {**arguments, "eps": eps})


def _spread(x: torch.Tensor) -> float:
    """The smallest difference between largest and smallest entry of a row; of no rows, any."""
    if x.numel() == 0:
        return np.inf
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


def _slice(trial: Trial, draw: Callable[[Trial], Arguments]) -> tuple[Arguments, Arguments, dict[str, Index]]:
    """One index of the first axis."""
    whole = dict(draw(trial))
    whole["x"] = whole["x"][None] if whole["x"].ndim == 1 else whole["x"]
    trial.assume(whole["x"].shape[0] > 0)
    i = trial.draw(st.integers(0, whole["x"].shape[0] - 1))
    index = (slice(i, i + 1),)
    return whole, {**whole, "x": whole["x"][index]}, {"result": index, "x": index}


def _changes(trial: Trial, parameters: tuple[str, ...]) -> tuple[Arguments, dict[str, Arguments]]:
    n, d = trial.draw(sizes(1, 4)), trial.fitted("d", trial.draw(sizes(3)))
    kind = trial.draw(values(("gaussian", "one-signed", "offset")))
    x = trial.tensor(kind.array(n, d))
    a: Arguments = {"x": x, **{name: trial.tensor(1.0 + np.arange(d) / d) for name in parameters}}
    changed = {name: {**a, name: nudged(trial, a[name], kind.rng)} for name in a}
    return a, changed | {"eps": {**a, "eps": float(x.double().square().mean())}}


def _bulk(trial: Trial, parameters: tuple[str, ...], rows: int) -> Arguments:
    """Many rows, so that the sums over them show how they were taken."""
    kind = trial.draw(values(("gaussian", "one-signed", "spread")))
    weights = trial.draw(values(("gaussian", "one-signed", "spread")))
    return {"x": trial.tensor(kind.array(rows, 24)), **{name: trial.tensor(weights.array(24)) for name in parameters}}


def _long(trial: Trial, parameters: tuple[str, ...]) -> Arguments:
    n, d = (70000, 3) if trial.draw(st.integers(0, 3)) == 3 else trial.draw(long_shapes())
    kind, weights = (trial.draw(values(("gaussian", "one-signed", "peaked"))) for _ in range(2))
    return {"x": trial.tensor(kind.array(n, d)), **{name: trial.tensor(weights.array(d)) for name in parameters}}


def _ordinary(trial: Trial) -> Arguments:
    lead, d = trial.draw(leading_shapes()), trial.fitted("d", trial.draw(sizes(2)))
    return {"x": trial.tensor(trial.draw(values(("gaussian",))).array(*lead, d))}


def _bad_rows(trial: Trial, parameters: tuple[str, ...]) -> Iterator[Refusal]:
    n, d = trial.draw(sizes(2)), trial.draw(sizes(2))
    x = trial.tensor(trial.draw(values(("gaussian",))).array(n, d))
    other = torch.float32 if trial.dtype is torch.float64 else torch.float64
    yield Refusal("no rows", {"x": None}, ("x",))
    yield Refusal("an empty axis", {"x": x[:, :0]}, ("x",))
    yield Refusal("a negative eps", {"x": x, "eps": -1e-3}, ("eps",))
    yield Refusal("a bool for a number", {"x": x, "eps": True}, ("eps",))
    for name in parameters:
        yield Refusal(f"a {name} too long", {"x": x, name: trial.tensor(np.ones(d + 1))}, (name,))
        yield Refusal(f"a {name} of one for all", {"x": x, name: trial.tensor(np.ones(1))}, (name,))
        yield Refusal(f"a {name} per row", {"x": x, name: trial.tensor(np.ones((n, d)))}, (name,))
        yield Refusal(f"a {name} of another dtype", {"x": x, name: torch.ones(d, dtype=other)}, (name, "x"))


LAYER_NORM = Operation(
    name="layer_norm",
    draw=draw_layer_norm,
    ordinary=_ordinary,
    formulas=(_layer_norm, layer_norm_one_pass),
    vjps=(_layer_norm_vjp, layer_norm_one_pass_vjp),
    inputs=("x", "weight", "bias"),
    refusals=lambda trial: _bad_rows(trial, ("weight", "bias")),
    part=lambda trial: _slice(trial, draw_layer_norm),
    changes=lambda trial: _changes(trial, ("weight", "bias")),
    long=lambda trial: _long(trial, ("weight", "bias")),
    bulk=lambda trial: _bulk(trial, ("weight", "bias"), _FEW_ROWS),
)

RMS_NORM = Operation(
    name="rms_norm",
    draw=draw_rms_norm,
    ordinary=_ordinary,
    formulas=(_rms_norm,),
    vjps=(_rms_norm_vjp, _rms_norm_vjp_by_chain),
    inputs=("x", "weight"),
    refusals=lambda trial: _bad_rows(trial, ("weight",)),
    part=lambda trial: _slice(trial, draw_rms_norm),
    changes=lambda trial: _changes(trial, ("weight",)),
    long=lambda trial: _long(trial, ("weight",)),
    bulk=lambda trial: _bulk(trial, ("weight",), _MANY_ROWS),
)
