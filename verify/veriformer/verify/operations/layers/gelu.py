"""GELU: its record and its laws."""

from __future__ import annotations

from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.family import check, on
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.layers.activations import (
    differ_by,
    draw_gelu,
    limits_law,
    many_numbers,
    ordinary_numbers,
    symmetry_law,
)
from veriformer.verify.strategies import sizes, values

GELU = operation(
    "gelu",
    sample=draw_gelu,
    sample_basic=ordinary_numbers,
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
