"""GELU: its record and its laws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from veriformer.spec.layers.gelu import gelu, gelu_vjp
from veriformer.verify.judging.op_info import InvalidCall, OpInfo
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.family import check, on
from veriformer.verify.operations.changes import perturbed
from veriformer.verify.operations.layers.activations import (
    bad_numbers,
    differ_by,
    draw_gelu,
    limits_law,
    many_numbers,
    ordinary_numbers,
    symmetry_law,
)
from veriformer.verify.strategies import choice, sizes, values


def _form(a: Mapping[str, Any]) -> dict[str, Any]:
    return {"approximate": a["approximate"]} if "approximate" in a else {}


def _gelu(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [gelu(xp, a["x"], **_form(a))]


def _gelu_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"x": gelu_vjp(xp, a["x"], g, **_form(a))}


def _gelu_changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    kind = trial.draw(values(("one-signed", "gaussian")))
    a: Arguments = {"x": trial.tensor(kind.array(4)), "approximate": trial.draw(choice("none", "tanh"))}
    other = "tanh" if a["approximate"] == "none" else "none"
    return a, {"x": {**a, "x": perturbed(trial, a["x"], kind.rng)}, "approximate": {**a, "approximate": other}}


def _bad_gelu(trial: Trial) -> Iterator[InvalidCall]:
    x = ordinary_numbers(trial)["x"]
    yield from bad_numbers(trial)
    yield InvalidCall("an unknown approximation", {"x": x, "approximate": "erf"}, ("approximate",))
    yield InvalidCall("a flag for an approximation", {"x": x, "approximate": True}, ("approximate",))


GELU = OpInfo(
    name="gelu",
    sample=draw_gelu,
    sample_basic=ordinary_numbers,
    formulas=(_gelu,),
    vjps=(_gelu_vjp,),
    inputs=("x",),
    invalid_calls=_bad_gelu,
    argument_perturbations=_gelu_changes,
    sample_accuracy=many_numbers,
    separate=("result", "gradient of x"),
    sample_large=draw_gelu,
    structural_dtypes=("fp32", "bf16"),
)


def _tanh_distance(trial: Trial) -> None:
    rng = trial.draw(values()).rng
    n = trial.draw(sizes(2))
    x = trial.tensor(2.7 * rng.choice([-1.0, 1.0], n) + rng.uniform(-0.7, 0.7, n))
    exact, bent = {"x": x}, {"x": x, "approximate": "tanh"}
    differ_by(trial, GELU, exact, bent, None, "the exact form less the tanh form")


CHECKS = (
    check("gelu.symmetry", on(GELU, symmetry_law)),
    check("gelu.limits", on(GELU, limits_law)),
    check("gelu.tanh_distance", _tanh_distance, dtypes=("fp64", "fp32")),
)
