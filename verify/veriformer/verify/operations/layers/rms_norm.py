"""Root-mean-square normalisation: its record and its laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from veriformer.spec.arithmetic.exact_inputs import unbroadcast
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.family import check
from veriformer.verify.laws.pairs import exact
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.layers.normalisation import (
    draw_rows,
    empty_rows,
    many_rows,
    ordinary_rows,
)
from veriformer.verify.operations.layers.normalisation_laws import (
    draw_eps,
    laws_of_norms,
    mean_square_law,
    row_squares,
    spread_rows,
)

_MANY_ROWS = (100, 800)


def _weighted_first(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Return (γ ⊙ x) r with r = 1 / √(mean(x²) + ε): the gain before the norm."""
    if a.get("weight") is None:
        return []
    return [a["x"] * a["weight"] * _inverse_root(xp, a)]


def _weighted_first_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """Return dx = (g r) γ + x · 2 dσ² / d with dσ² = −r³ Σ g γ x / 2; dγ = Σ (g r) x."""
    if a.get("weight") is None:
        return {}
    x, weight, r = a["x"], a["weight"], _inverse_root(xp, a)
    d_square = xp.sum(g * (x * weight), axis=-1, keepdims=True) * (r * r * r) / -2
    found = {"x": g * r * weight + x * (d_square * 2 / x.shape[-1])}
    return found | {"weight": unbroadcast(xp, g * r * x, weight.shape)}


def _inverse_root(xp: Any, a: Mapping[str, Any]) -> Any:
    x = a["x"]
    return 1 / xp.sqrt(xp.sum(x * x, axis=-1, keepdims=True) / x.shape[-1] + a.get("eps", 1e-6))


def _rms_norm_vjp_by_chain(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """Return h r + x · 2 dσ² / d with dσ² = −r³ Σ h x / 2, as the chain rule gives it for x · r."""
    x, d = a["x"], a["x"].shape[-1]
    r = _inverse_root(xp, a)
    h = g if a.get("weight") is None else g * a["weight"]
    d_square = xp.sum(h * x, axis=-1, keepdims=True) * (r * r * r) / -2
    found = {"x": h * r + x * (d_square * 2 / d)}
    if a.get("weight") is not None:
        found["weight"] = unbroadcast(xp, g * (x * r), a["weight"].shape)
    return found


def draw_rms_norm(trial: Trial) -> Arguments:
    """Draw rows with or without weight; ``eps`` left out, given, or 0 where no row is zero."""
    arguments = draw_rows(trial, ("weight",))
    if arguments.get("eps") == 0.0 and not bool(arguments["x"].abs().amax(-1).gt(0).all()):
        arguments["eps"] = 0.01
    return arguments


RMS_NORM = operation(
    "rms_norm",
    sample=draw_rms_norm,
    sample_basic=ordinary_rows,
    also=(_weighted_first,),
    also_gradients=(_rms_norm_vjp_by_chain, _weighted_first_vjp),
    refuses=empty_rows,
    sample_large=draw_rms_norm,
    sample_accuracy=lambda trial: many_rows(trial, ("weight",), _MANY_ROWS),
)


def _unit(trial: Trial) -> None:
    arguments: dict[str, Any] = {"x": spread_rows(trial), "eps": draw_eps(trial)}
    law = mean_square_law(exact(trial, RMS_NORM, arguments))
    size = arguments["x"].double().square().mean(-1).numpy()
    of_law = Reference(size / (size + arguments["eps"]), law.bound, scale=1.0, constant=True)
    y = trial.call(arguments).result
    trial.assert_within_bound(trial.observe(row_squares, y), of_law, "the mean square of a row")


CHECKS = (check("rms_norm.unit", _unit), *laws_of_norms(RMS_NORM))
