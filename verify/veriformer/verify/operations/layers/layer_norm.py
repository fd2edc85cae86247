"""Layer normalisation: its record and its laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from veriformer.spec.arithmetic.exact_inputs import unbroadcast
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees, gradients_agree
from veriformer.verify.laws.equality import equal, finite, total
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import draw_cotangent
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
from veriformer.verify.strategies import choice, sizes, values

_FEW_ROWS = (16, 60)
"""PyTorch's layer norm on a CPU sums the gradients of weight and bias in the half itself (pytorch/pytorch#188375):
their error grows with the root of the number of rows, to nine times the plain formula's at 500, and more than three
times at 30 where it is the bias's."""


def _moments(xp: Any, a: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Return μ, x − μ and 1 / √(σ² + ε) with σ² = E[x²] − E[x]²: exact over the reals, cancelling for large means."""
    x, d = a["x"], a["x"].shape[-1]
    mean = xp.sum(x, axis=-1, keepdims=True) / d
    variance = xp.sum(x * x, axis=-1, keepdims=True) / d - mean * mean
    return mean, x - mean, 1 / xp.sqrt(variance + a.get("eps", 1e-5))


def layer_norm_one_pass(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Return layer normalisation with the one-pass variance."""
    _, centred, r = _moments(xp, a)
    y = centred * r if a.get("weight") is None else centred * r * a["weight"]
    return [y if a.get("bias") is None else y + a["bias"]]


def layer_norm_one_pass_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """Compute the gradient of the one-pass variance by the chain rule: σ² passes on 2 x / d, and −2 μ to the mean."""
    mean, centred, r = _moments(xp, a)
    x, d = a["x"], a["x"].shape[-1]
    h = g if a.get("weight") is None else g * a["weight"]
    d_variance = xp.sum(h * centred, axis=-1, keepdims=True) * (r * r * r) / -2
    d_mean = -(xp.sum(h * r, axis=-1, keepdims=True) + mean * d_variance * 2)
    found = {"x": h * r + x * (d_variance * 2 / d) + d_mean / d}
    if a.get("weight") is not None:
        found["weight"] = unbroadcast(xp, g * (centred * r), a["weight"].shape)
    if a.get("bias") is not None:
        found["bias"] = unbroadcast(xp, g, a["bias"].shape)
    return found


def _weighted_first(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Return γ ⊙ (x − μ) before the root of the variance, as code writes that divides last."""
    if a.get("weight") is None:
        return []
    _, centred, r = _centred(xp, a)
    y = centred * a["weight"] * r
    return [y if a.get("bias") is None else y + a["bias"]]


def _weighted_first_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """Return dc = (g r) γ + c · 2 dσ² / d with dσ² = −r³ Σ g γ c / 2, dx = dc − mean(dc); dγ = Σ (g r) c."""
    if a.get("weight") is None:
        return {}
    d, centred, r = _centred(xp, a)
    weight = a["weight"]
    d_variance = xp.sum(g * (centred * weight), axis=-1, keepdims=True) * (r * r * r) / -2
    dc = g * r * weight + centred * (d_variance * 2 / d)
    found = {"x": dc - xp.sum(dc, axis=-1, keepdims=True) / d}
    found["weight"] = unbroadcast(xp, g * r * centred, weight.shape)
    if a.get("bias") is not None:
        found["bias"] = unbroadcast(xp, g, a["bias"].shape)
    return found


def _centred(xp: Any, a: Mapping[str, Any]) -> tuple[int, Any, Any]:
    """Return d, x − μ and 1 / √(σ² + ε) by the mean of (x − μ)²."""
    x, d = a["x"], a["x"].shape[-1]
    centred = x - xp.sum(x, axis=-1, keepdims=True) / d
    return d, centred, 1 / xp.sqrt(xp.sum(centred * centred, axis=-1, keepdims=True) / d + a.get("eps", 1e-5))


def _spread(x: torch.Tensor) -> float:
    """Return the smallest difference between largest and smallest entry of a row; of no rows, any."""
    if x.numel() == 0:
        return np.inf
    rows = x.double()
    return float((rows.amax(-1) - rows.amin(-1)).min())


def draw_layer_norm(trial: Trial) -> Arguments:
    """Draw rows with weight and bias, either, or neither; ``eps`` left out, given, or 0 where no row is constant."""
    arguments = draw_rows(trial, ("weight", "bias"))
    if arguments.get("eps") == 0.0 and not _spread(arguments["x"]):
        arguments["eps"] = 0.01
    return arguments


LAYER_NORM = operation(
    "layer_norm",
    sample=draw_layer_norm,
    sample_basic=ordinary_rows,
    also=(layer_norm_one_pass, _weighted_first),
    also_gradients=(layer_norm_one_pass_vjp, _weighted_first_vjp),
    refuses=empty_rows,
    sample_large=draw_layer_norm,
    sample_accuracy=lambda trial: many_rows(trial, ("weight", "bias"), _FEW_ROWS),
)


def row_sums(y: torch.Tensor) -> torch.Tensor:
    """Return sums of rows in float64."""
    return y.double().sum(-1)


def _row_moments(trial: Trial) -> None:
    arguments: dict[str, Any] = {"x": spread_rows(trial), "eps": draw_eps(trial)}
    reference = exact(trial, LAYER_NORM, arguments)
    y = trial.call(arguments).result
    trial.assert_within_bound(trial.observe(row_sums, y), total(0.0, reference.bound, -1), "the sum of a row")
    x = arguments["x"].double().numpy()
    variance = x.var(-1)
    law = mean_square_law(reference)
    of_law = Reference(variance / (variance + arguments["eps"]), law.bound, scale=1.0, constant=True)
    trial.assert_within_bound(trial.observe(row_squares, y), of_law, "the variance of a row")


def _shift(trial: Trial) -> None:
    x = spread_rows(trial, exact_step=0.25)
    shift = trial.draw(choice(4.0, -8.0, 2.0))
    a, b = {"x": x}, {"x": x + shift}
    of_a, of_b = (exact(trial, LAYER_NORM, one) for one in (a, b))
    equal(trial, trial.call(a).result, trial.call(b).result, of_a, of_b, "layer norm of shifted rows")


def _constant_rows(trial: Trial) -> None:
    n, d = trial.draw(sizes(1, 3)), trial.draw(choice(4, 2, 1, 8))
    level = trial.draw(choice(0.0, 1.0, -0.5, 64.0))
    rng = trial.draw(values()).rng
    arguments = {
        "x": trial.tensor(np.full((n, d), level)),
        "weight": trial.tensor(rng.standard_normal(d)),
        "bias": trial.tensor(rng.standard_normal(d)),
        "eps": trial.draw(choice(1e-5, 0.01, 1.0)),
    }
    outcome = trial.call(arguments, wrt=("x",), cotangent=trial.tensor(rng.standard_normal((n, d))))
    gradient = outcome.gradient("x")
    finite(trial, gradient, "the gradient at a constant row")
    reference = exact(trial, LAYER_NORM, arguments)
    trial.assert_within_bound(outcome.result, reference, "result at constant rows")
    cotangent = trial.calls[-1].cotangent
    assert cotangent is not None
    found = LAYER_NORM.exact_gradients(trial, arguments, cotangent, use_exact_oracle=False)["x"]
    trial.assert_within_bound(gradient, found, "gradient at constant rows")


def _conditioning(trial: Trial) -> None:
    """Check a mean thousands of times the spread: two passes keep half of the digits, one pass none."""
    large = trial.sizes({"rows": (1, 50), "width": (3, 2000)}, lambda s: s["rows"] * s["width"])
    n, d = (large["rows"], large["width"]) if large else (trial.draw(sizes(1, 3)), trial.draw(sizes(3, 8)))
    digits = trial.format.precision
    level = trial.draw(choice(1.0, -1.0)) * 2.0 ** (digits // 2)
    kind = trial.draw(values(("gaussian", "one-signed", "peaked")))
    arguments = {"x": trial.tensor(level + kind.array(n, d))}
    claimed = trial.claims.convention("layer_norm.variance")
    two_pass = replace(LAYER_NORM, formulas=LAYER_NORM.formulas[:1], vjps=LAYER_NORM.vjps[:1])
    operation = LAYER_NORM if claimed == "one-pass" else two_pass
    cotangent = draw_cotangent(trial, (n, d))
    outcome = trial.call(arguments, wrt=("x",), cotangent=cotangent)
    agrees(trial, operation, arguments, outcome, operation.exact(trial, arguments, use_exact_oracle=False))
    gradients_agree(trial, outcome, operation.exact_gradients(trial, arguments, cotangent, use_exact_oracle=False))
    trial.effective.append(True)


CHECKS = (
    check("layer_norm.moments", _row_moments),
    check("layer_norm.shift", _shift),
    check("layer_norm.constant_rows", _constant_rows),
    check("layer_norm.conditioning", _conditioning, dtypes=("fp64", "fp32"), convention="layer_norm.variance"),
    *laws_of_norms(LAYER_NORM),
)
