"""SwiGLU: its record and its laws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from veriformer.spec.layers.swiglu import swiglu, swiglu_vjp
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.op_info import InvalidCall, OpInfo
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import judged
from veriformer.verify.laws.equality import sums
from veriformer.verify.laws.family import check
from veriformer.verify.operations.layers.two_layer_laws import ALGEBRA, laws_of_two_layers
from veriformer.verify.operations.layers.two_layers import (
    bad_tensors,
    bulk_of,
    changes_of,
    draw_widths,
    gated,
    one_row,
    ordinary_of,
    tensors_of,
)
from veriformer.verify.strategies import sizes, values

GATED = ("w_gate", "w_up", "w_down")


def _swiglu(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [swiglu(xp, *tensors_of(a, GATED))]


def _swiglu_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return dict(zip(("x", *GATED), swiglu_vjp(xp, *[*tensors_of(a, GATED), g]), strict=True))


def draw_swiglu(trial: Trial) -> Arguments:
    """Draw rows of any leading shape."""
    return gated(trial, *draw_widths(trial))


def _bad_gated(trial: Trial) -> Iterator[InvalidCall]:
    a = gated(trial, (2,), 3, 5, 4)
    yield from bad_tensors(trial, a, {"w_gate": ("x", "w_up"), "w_up": ("x", "w_gate"), "w_down": ("w_gate", "w_up")})
    yield InvalidCall("one hidden unit to let through", {**a, "w_up": a["w_up"][:, :1]}, ("w_up", "w_gate"))


SWIGLU = OpInfo(
    name="swiglu",
    sample=draw_swiglu,
    sample_basic=ordinary_of(gated),
    formulas=(_swiglu,),
    vjps=(_swiglu_vjp,),
    inputs=("x", *GATED),
    invalid_calls=_bad_gated,
    batch_slice=lambda trial: one_row(trial, draw_swiglu),
    argument_perturbations=lambda trial: changes_of(trial, gated, ("x", *GATED)),
    sample_accuracy=bulk_of(gated),
    sample_large=draw_swiglu,
    use_exact_oracle=False,
    structural_dtypes=("fp32", "bf16"),
)


def _value_linear(trial: Trial) -> None:
    d, f, o = trial.draw(sizes(1, 4)), trial.draw(sizes(1, 5)), trial.draw(sizes(1, 4))
    a: dict[str, Any] = gated(trial, (trial.draw(sizes(1, 3)),), d, f, o)
    rng = trial.draw(values()).rng
    ups = [trial.tensor(rng.integers(-6, 7, (d, f)) / 4) for _ in range(2)]
    found = [judged(trial, SWIGLU, {**a, "w_up": up}) for up in (*ups, ups[0] + ups[1])]
    bound = sum(reference.bound for _, reference in found) * (1 + 2.0**-50)
    size = max(float(np.abs(reference.exact).max()) for _, reference in found)
    law = Reference(np.zeros(np.shape(bound)), np.asarray(bound + 2.0**-50 * size), scale=size, constant=True)
    trial.assert_within_bound(
        trial.observe(sums, *(y for y, _ in found)), law, "results for two values less that for their sum"
    )


CHECKS = (
    *laws_of_two_layers(SWIGLU),
    check("swiglu.value_linear", _value_linear, dtypes=ALGEBRA),
)
