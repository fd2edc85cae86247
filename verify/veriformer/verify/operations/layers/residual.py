"""The residual connection: its record and its laws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from veriformer.spec.layers.residual import residual, residual_vjp
from veriformer.verify.judging.op_info import InvalidCall, OpInfo
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import judged
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import judge_with_gradients
from veriformer.verify.operations.changes import perturbed
from veriformer.verify.scripts.script import literal
from veriformer.verify.strategies import choice, shapes, sizes, values


def _options(a: Mapping[str, Any]) -> dict[str, Any]:
    return {"scale": a["scale"]} if "scale" in a else {}


def _residual(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [residual(xp, a["x"], a["fx"], **_options(a))]


def _residual_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return dict(zip(("x", "fx"), residual_vjp(xp, a["x"], a["fx"], g, **_options(a)), strict=True))


def draw_residual(trial: Trial) -> Arguments:
    """Draw tensors of any rank from 1, and a scale of any sign, or none."""
    shape = trial.rows()
    shape = trial.draw(shapes(1, 4, 4)) if shape is None else shape
    tensors = {name: trial.tensor(trial.draw(values()).array(*shape)) for name in ("x", "fx")}
    return {**tensors, **trial.option("scale", 0.5, None, 1.0, 2.0, -1.0, 1 / 3, 0.0, 1e-3, 3)}


def _ordinary(trial: Trial) -> Arguments:
    shape = trial.draw(sizes(1, 3)), trial.draw(sizes(2))
    kind = trial.draw(values(("gaussian",)))
    return {"x": trial.tensor(kind.array(*shape)), "fx": trial.tensor(kind.rng.standard_normal(shape))}


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    a = {**_ordinary(trial), "scale": 0.5}
    rng = trial.draw(values()).rng
    changed = {name: {**a, name: perturbed(trial, a[name], rng)} for name in ("x", "fx")}
    return a, {**changed, "scale": {**a, "scale": trial.draw(choice(-0.5, 1.0, 0.0))}}


def _refusals(trial: Trial) -> Iterator[InvalidCall]:
    a = _ordinary(trial)
    other = torch.float32 if trial.dtype is torch.float64 else torch.float64
    yield InvalidCall("no input", {**a, "x": None}, ("x",))
    yield InvalidCall("no branch", {**a, "fx": None}, ("fx",))
    yield InvalidCall("a branch without an axis", {**a, "fx": a["fx"][0]}, ("fx", "x"))
    yield InvalidCall("one number for a row", {**a, "fx": a["fx"][:, :1]}, ("fx", "x"))
    yield InvalidCall("a branch too wide", {**a, "x": a["x"][:, :-1]}, ("fx", "x"))
    yield InvalidCall("a branch of another dtype", {**a, "fx": a["fx"].to(other)}, ("fx", "x"))
    yield InvalidCall("a bool for a scale", {**a, "scale": True}, ("scale",))
    yield InvalidCall("no number for a scale", {**a, "scale": None}, ("scale",))


RESIDUAL = OpInfo(
    name="residual",
    sample=draw_residual,
    sample_basic=_ordinary,
    formulas=(_residual,),
    vjps=(_residual_vjp,),
    inputs=("x", "fx"),
    invalid_calls=_refusals,
    argument_perturbations=_changes,
    sample_large=draw_residual,
    structural_dtypes=("fp32", "bf16"),
)


def _identity(trial: Trial) -> None:
    shape = trial.draw(shapes(1, 3, 4))
    kind = trial.draw(values())
    x, fx = trial.tensor(kind.array(*shape)), trial.tensor(1.0 + np.abs(kind.rng.standard_normal(shape)))
    judged(trial, RESIDUAL, {"x": x, "fx": fx, "scale": trial.draw(choice(1.0, -0.5, 3.0))})
    nothing: tuple[dict[str, Any], ...] = ({"fx": torch.zeros_like(fx)}, {"fx": fx, "scale": 0.0})
    y = trial.call({"x": x, **trial.draw(choice(0, 1).map(nothing.__getitem__))}).result
    same = torch.equal(y.value, x)
    trial.assert_true(
        same, "an input to which nothing is added has changed", f"torch.equal({y.expression}, {literal(x)})"
    )


def _scaled_branch(trial: Trial) -> None:
    shape = trial.draw(shapes(1, 2, 4))
    rng = trial.draw(values()).rng
    side = rng.choice([-1.0, 1.0], shape)
    fx = trial.tensor(side * rng.integers(40000, 60000, shape))
    x = trial.tensor(-side * rng.integers(40000, 60000, shape))
    judge_with_gradients(trial, RESIDUAL, {"x": x, "fx": fx, "scale": 2.0})


CHECKS = (
    check("residual.identity", _identity),
    check("residual.range", _scaled_branch, dtypes=("fp16",)),
)
