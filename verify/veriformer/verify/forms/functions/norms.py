"""Norms as functions whose weight, and bias, may be required."""

from __future__ import annotations

from veriformer.verify.forms.named import Known, form_of, words_of

_X = {"x": ("x", "input", "inputs", "hidden_states", "X", "tensor")}
_WEIGHT = ("weight", "w", "gamma", "g", "scale", "alpha")
_BIAS = ("bias", "b", "beta", "shift", "offset")
_EPS = ("eps", "epsilon", "norm_eps", "variance_epsilon")

LAYER_NORM = Known(
    "layer_norm",
    words_of("layer norm", "layernorm", "layer normalization", "ln"),
    _X,
    {"weight": _WEIGHT, "bias": _BIAS, "eps": _EPS},
    frozenset(("rms", "backward", "bwd", "grad", "init", "config")),
)
RMS_NORM = Known(
    "rms_norm",
    words_of("rms norm", "rmsnorm", "rms normalization"),
    _X,
    {"weight": _WEIGHT, "eps": _EPS},
    frozenset(("backward", "bwd", "grad", "init", "config")),
)


FORMS = (form_of("functions/layer_norm", LAYER_NORM), form_of("functions/rms_norm", RMS_NORM))
