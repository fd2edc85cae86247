"""GELU and SiLU as functions or classes."""

from __future__ import annotations

import torch

from veriformer.verify.forms.named import Known, form_of, words_of

_X = {"x": ("x", "input", "inputs", "z", "hidden_states", "tensor", "a")}

_QUICK = "a sigmoid of 1.702 x for the normal distribution"

GELU = Known(
    "gelu",
    words_of("gelu", "newgelu", "gelunew"),
    _X,
    {"approximate": ("approximate",)},
    rivals={_QUICK: lambda x, **_: x * torch.sigmoid(1.702 * x)},
    says="gelu(x), exact or by tanh, as a function or a class",
)
SILU = Known(
    "silu",
    words_of("silu", "swish"),
    _X,
    rivals={"a gate of three straight pieces": lambda x, **_: torch.nn.functional.hardswish(x)},
    says="silu(x) or swish(x), as a function or a class",
)

FORMS = (form_of("functions/gelu", GELU), form_of("functions/silu", SILU))
