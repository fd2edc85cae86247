"""SiLU: its record and its laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from veriformer.verify.laws.family import check, on
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.layers.activations import (
    draw_numbers,
    limits_law,
    many_numbers,
    ordinary_numbers,
    symmetry_law,
)


def _gate_by_tanh(xp: Any, x: Any) -> Any:
    """Compute σ(x) = (1 + tanh(x / 2)) / 2: no overflow, and a small absolute, not relative, error."""
    return (1 + xp.tanh(x / 2)) / 2


def silu_by_tanh(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Return SiLU through the hyperbolic tangent."""
    return [a["x"] * _gate_by_tanh(xp, a["x"])]


def silu_by_tanh_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """Return the gradient of ``silu_by_tanh``."""
    s = _gate_by_tanh(xp, a["x"])
    return {"x": g * (s * (1 + a["x"] * (1 - s)))}


def _silu_vjp_by_product(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """Return g s + g x s (1 − s), as the chain rule gives it for x · s."""
    s = _gate_by_tanh(xp, a["x"])
    return {"x": g * s + g * a["x"] * (s * (1 - s))}


SILU = operation(
    "silu",
    sample=draw_numbers,
    sample_basic=ordinary_numbers,
    also=(silu_by_tanh,),
    also_gradients=(silu_by_tanh_vjp, _silu_vjp_by_product),
    sample_accuracy=many_numbers,
    separate=("result", "gradient of x"),
    sample_large=draw_numbers,
    structural_dtypes=("fp32", "bf16"),
)


_FAR_SILU = replace(SILU, formulas=(silu_by_tanh,), vjps=(silu_by_tanh_vjp,))
"""SiLU by a formula that holds far below zero, where e^{−x} overflows."""

CHECKS = (
    check("silu.symmetry", on(SILU, symmetry_law)),
    check("silu.limits", on(_FAR_SILU, limits_law)),
)
