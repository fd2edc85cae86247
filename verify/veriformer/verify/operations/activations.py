"""GELU and SiLU as records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from veriformer.spec.layers.gelu import gelu, gelu_vjp
from veriformer.spec.layers.silu import silu, silu_vjp
from veriformer.verify.operation import Operation, Refusal
from veriformer.verify.operations.changes import nudged
from veriformer.verify.strategies import choice, leading_shapes, long_shapes, sizes, values
from veriformer.verify.trial import Arguments, Trial


def _form(a: Mapping[str, Any]) -> dict[str, Any]:
    return {"approximate": a["approximate"]} if "approximate" in a else {}


def _gelu(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [gelu(xp, a["x"], **_form(a))]


def _gelu_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"x": gelu_vjp(xp, a["x"], g, **_form(a))}


def _silu(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [silu(xp, a["x"])]


def _silu_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"x": silu_vjp(xp, a["x"], g)}


def _gate_by_tanh(xp: Any, x: Any) -> Any:
    """σ(x) = (1 + tanh(x / 2)) / 2, which overflows nowhere and is good to roundoff absolutely, not relatively."""
    return (1 + xp.tanh(x / 2)) / 2


def silu_by_tanh(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """SiLU through the hyperbolic tangent."""
    return [a["x"] * _gate_by_tanh(xp, a["x"])]


def silu_by_tanh_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """Its gradient."""
    s = _gate_by_tanh(xp, a["x"])
    return {"x": g * (s * (1 + a["x"] * (1 - s)))}


def _silu_vjp_by_product(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """g s + g x s (1 − s), as the chain rule gives it for x · s."""
    s = _gate_by_tanh(xp, a["x"])
    return {"x": g * s + g * a["x"] * (s * (1 - s))}


def draw_numbers(trial: Trial) -> Arguments:
    """Numbers near zero, near the bend, and far out; of any rank."""
    shape = trial.draw(leading_shapes())
    x = trial.draw(values()).array(*(shape or (1,))) * trial.draw(choice(1.0, 3.0, 0.25, 12.0))
    return {"x": trial.tensor(x if shape else x[0])}


def draw_gelu(trial: Trial) -> Arguments:
    """Numbers, and either form."""
    return {**draw_numbers(trial), **trial.option("approximate", None, "tanh", "none")}


def _ordinary(trial: Trial) -> Arguments:
    return {"x": trial.tensor(trial.draw(values(("gaussian",))).array(trial.draw(sizes(1, 3)), trial.draw(sizes(2))))}


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    a = _ordinary(trial)
    return a, {"x": {"x": nudged(trial, a["x"], trial.draw(values()).rng)}}


def _gelu_changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    kind = trial.draw(values(("one-signed", "gaussian")))
    a: Arguments = {"x": trial.tensor(kind.array(4)), "approximate": trial.draw(choice("none", "tanh"))}
    other = "tanh" if a["approximate"] == "none" else "none"
    return a, {"x": {**a, "x": nudged(trial, a["x"], kind.rng)}, "approximate": {**a, "approximate": other}}


def _bulk(trial: Trial) -> Arguments:
    return {"x": trial.tensor(2.0 * trial.draw(values(("gaussian", "one-signed", "offset"))).array(40, 30))}


def _long(trial: Trial) -> Arguments:
    kind = trial.draw(values(("gaussian", "one-signed", "offset")))
    return {"x": trial.tensor(2.0 * kind.array(*trial.draw(long_shapes())))}


def _refusals(trial: Trial) -> Iterator[Refusal]:
    yield Refusal("no tensor", {"x": None}, ("x",))
    yield Refusal("a number", {"x": 1.0}, ("x",))


def _bad_gelu(trial: Trial) -> Iterator[Refusal]:
    x = _ordinary(trial)["x"]
    yield from _refusals(trial)
    yield Refusal("an unknown approximation", {"x": x, "approximate": "erf"}, ("approximate",))
    yield Refusal("a flag for an approximation", {"x": x, "approximate": True}, ("approximate",))


GELU = Operation(
    name="gelu",
    draw=draw_gelu,
    ordinary=_ordinary,
    formulas=(_gelu,),
    vjps=(_gelu_vjp,),
    inputs=("x",),
    refusals=_bad_gelu,
    changes=_gelu_changes,
    bulk=_bulk,
    long=lambda trial: {**_long(trial), **trial.option("approximate", None, "tanh")},
    forms=("fp32", "bf16"),
)

SILU = Operation(
    name="silu",
    draw=draw_numbers,
    ordinary=_ordinary,
    formulas=(_silu, silu_by_tanh),
    vjps=(_silu_vjp, silu_by_tanh_vjp, _silu_vjp_by_product),
    inputs=("x",),
    refusals=_refusals,
    changes=_changes,
    bulk=_bulk,
    long=_long,
    forms=("fp32", "bf16"),
)
