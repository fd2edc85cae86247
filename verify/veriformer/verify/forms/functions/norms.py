"""Norms as functions whose weight, and bias, may be required."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from veriformer.verify.forms.named import Known, form_of, words_of

_X = {"x": ("x", "input", "inputs", "hidden_states", "X", "tensor")}
_WEIGHT = ("weight", "w", "gamma", "g", "scale", "alpha")
_BIAS = ("bias", "b", "beta", "shift", "offset")
_EPS = ("eps", "epsilon", "norm_eps", "variance_epsilon")


def _second_axis(norm: Callable[..., Tensor]) -> Mapping[str, Callable[..., Tensor]]:
    """The norm of what lies along the second axis, as networks over images have it; not of what has fewer axes."""

    def along(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, **given: Any) -> Tensor:
        if x.ndim < 3:
            raise ValueError("x: expected a second axis that is not the last")
        parameters = [one for one in (weight, bias) if one is not None]
        return norm(x.movedim(1, -1), x.shape[1:2], *parameters, **given).movedim(-1, 1)

    return {"its rows along the second axis": along}


LAYER_NORM = Known(
    "layer_norm",
    words_of("layer norm", "layernorm", "layer normalization", "ln"),
    _X,
    {"weight": _WEIGHT, "bias": _BIAS, "eps": _EPS},
    frozenset(("rms", "backward", "bwd", "grad", "init", "config")),
    rivals=_second_axis(nn.functional.layer_norm),
)
RMS_NORM = Known(
    "rms_norm",
    words_of("rms norm", "rmsnorm", "rms normalization"),
    _X,
    {"weight": _WEIGHT, "eps": _EPS},
    frozenset(("backward", "bwd", "grad", "init", "config")),
    rivals=_second_axis(nn.functional.rms_norm),
)


FORMS = (form_of("functions/layer_norm", LAYER_NORM), form_of("functions/rms_norm", RMS_NORM))
