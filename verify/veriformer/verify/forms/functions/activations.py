"""GELU and SiLU as functions or classes."""

from __future__ import annotations

from typing import Any

import torch

from veriformer.verify.forms.form import Readings
from veriformer.verify.forms.named import Known, form_of, words_of

_X = {"x": ("x", "input", "inputs", "z", "hidden_states", "tensor", "a")}
_BIASED = {"x": (*_X["x"], "y", "inp"), "bias": ("bias", "b")}
BIAS = ("half of the input, in its shape", "zeros along the last axis")
"""Addends given as a bias: the parts of the first add up exactly, and the gradients of both are judged."""


def _split_bias(given: dict[str, Any], readings: Readings) -> dict[str, Any]:
    x = given["x"]
    bias = x / 2 if readings["bias"] == BIAS[0] else x.new_zeros(x.shape[-1:])
    return {**given, "x": x - bias, "bias": bias}


_QUICK = "a sigmoid of 1.702 x for the normal distribution"

GELU = Known(
    "gelu",
    words_of("gelu", "newgelu", "gelunew"),
    _X,
    {"approximate": ("approximate",)},
    rivals={_QUICK: lambda x, **_: x * torch.sigmoid(1.702 * x)},
    says="gelu(x), exact or by tanh, as a function or a class",
)
BIAS_GELU = Known(
    "gelu",
    words_of("gelu", "newgelu", "gelunew"),
    _BIASED,
    {"approximate": ("approximate",)},
    frozenset(("back", "backward", "bwd", "grad", "gated", "glu")),
    readings={"bias": BIAS},
    arrange=_split_bias,
    neutral=("bias",),
    says="bias_gelu(bias, x), as a function or a class",
)
SILU = Known(
    "silu",
    words_of("silu", "swish"),
    _X,
    rivals={"a gate of three straight pieces": lambda x, **_: torch.nn.functional.hardswish(x)},
    says="silu(x) or swish(x), as a function or a class",
)

FORMS = (form_of("functions/bias_gelu", BIAS_GELU), form_of("functions/gelu", GELU), form_of("functions/silu", SILU))
