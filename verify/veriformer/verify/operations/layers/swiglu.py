"""SwiGLU: its record and its laws."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.agreement import call_within_bound
from veriformer.verify.laws.equality import sums
from veriformer.verify.laws.family import check
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.layers.two_layer_laws import ALGEBRA, laws_of_two_layers
from veriformer.verify.operations.layers.two_layers import (
    gated,
)
from veriformer.verify.strategies import sizes, values

SWIGLU = operation("swiglu", use_exact_oracle=False, structural_dtypes=("fp32", "bf16"))


def _value_linear(trial: Trial) -> None:
    d, f, o = trial.draw(sizes(1, 4)), trial.draw(sizes(1, 5)), trial.draw(sizes(1, 4))
    a: dict[str, Any] = gated(trial, (trial.draw(sizes(1, 3)),), d, f, o)
    rng = trial.draw(values()).rng
    ups = [trial.tensor(rng.integers(-6, 7, (d, f)) / 4) for _ in range(2)]
    found = [call_within_bound(trial, SWIGLU, {**a, "w_up": up}) for up in (*ups, ups[0] + ups[1])]
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
