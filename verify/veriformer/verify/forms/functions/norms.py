"""Norms as functions whose weight, and bias, may be required."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.form import Readings
from veriformer.verify.forms.named import Known, form_of, words_of

_X = {"x": ("x", "input", "inputs", "hidden_states", "X", "tensor", "data")}
_WEIGHT = ("weight", "w", "gamma", "g", "gain", "scale", "alpha", "weights", "W", "rms_weight", "rms_weights", "rms_w")
_BIAS = ("bias", "b", "beta", "shift", "offset", "B")
_EPS = ("eps", "epsilon", "norm_eps", "variance_epsilon")
_SHAPE = {"normalized_shape": ("normalized_shape", "normalised_shape", "norm_shape")}


_AXIS = {"axis": ("axis", "axes", "dim", "norm_axis")}


def _with_shape(given: dict[str, Any], readings: Readings) -> dict[str, Any]:
    """Add the normalised axes as sizes and as a number: the last axis alone."""
    return {**given, "normalized_shape": tuple(given["x"].shape[-1:]), "axis": -1}


_FUSED = {
    "added": ("residual", "residual_in", "res"),
    "more": ("x1",),
    "rows": ("rowscale", "row_scale"),
    "rate": ("dropout_p",),
    "kept": ("dropout_mask",),
    "kept_more": ("dropout_mask1",),
    "weight_more": ("weight1",),
    "bias_more": ("bias1",),
}
"""Operations that kernels fuse with a norm: a residual added, rows scaled, entries dropped, a second result."""


NEXT_TO_NOTHING = 1e-300
"""A rate p of dropout by which nothing is dropped and 1 / (1 − p) is 1, which is not the 0 that skips dropout."""


def _fused(given: Mapping[str, Any], names: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield arguments by which what is fused makes the same input of others, exactly."""
    x = given["x"]
    added = [role for role in ("added", "more") if role in names]
    for some in (added, added[:1]):
        if some and x.shape[-1] > len(some):
            places = torch.arange(x.shape[-1]) % (len(some) + 1)
            first, *others = (x.where(places == i, 0) for i in range(len(some) + 1))
            yield {**given, "x": first, **dict(zip(some, others, strict=True))}
    half = x / 2
    if torch.equal(half * 2, x):
        if "rows" in names:
            yield {**given, "x": half, "rows": x.new_full(x.shape[:-1], 2.0)}
        if {"rate", "kept"} <= set(names):
            all_of_it = torch.ones_like(x, dtype=torch.bool)
            more = {"more": torch.zeros_like(x), "kept_more": all_of_it} if "kept_more" in names else {}
            yield {**given, "x": half, "rate": 0.5, "kept": all_of_it, **more}
    if "rate" in names:
        yield {**given, "rate": NEXT_TO_NOTHING, **({"more": torch.zeros_like(x)} if "more" in names else {})}
    if "weight_more" in names and "weight" in given:
        yield {**given, "weight_more": given["weight"], "bias_more": given.get("bias")}


def _second_axis(norm: Callable[..., Tensor]) -> Mapping[str, Callable[..., Tensor]]:
    """Return the norm of what lies along the second axis, as networks over images have it; not of what has fewer
    axes.
    """

    def along(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, **given: Any) -> Tensor:
        if x.ndim < 3:
            raise ValueError("x: expected a second axis that is not the last")
        parameters = [one for one in (weight, bias) if one is not None]
        return norm(x.movedim(1, -1), x.shape[1:2], *parameters, **given).movedim(-1, 1)

    return {"its rows along the second axis": along}


_OTHERS = ("backward", "bwd", "grad", "init", "config", "clip", "clipped", "clipping")
"""Words of functions that have a norm in their name and are none, such as clipping by the root of a mean square."""

LAYER_NORM = Known(
    "layer_norm",
    words_of("layer norm", "layernorm", "layer normalization", "ln"),
    _X,
    {"weight": _WEIGHT, "bias": _BIAS, "eps": _EPS},
    filled={**_SHAPE, **_AXIS, **_FUSED},
    arrange=_with_shape,
    alike=_fused,
    not_words=frozenset(("rms", *_OTHERS)),
    rivals=_second_axis(nn.functional.layer_norm),
)
RMS_NORM = Known(
    "rms_norm",
    words_of("rms norm", "rmsnorm", "rms normalization", "rms layernorm", "rms layer norm"),
    _X,
    {"weight": _WEIGHT, "eps": _EPS},
    filled={**_SHAPE, **_AXIS, **_FUSED},
    arrange=_with_shape,
    alike=_fused,
    not_words=frozenset(_OTHERS),
    rivals=_second_axis(nn.functional.rms_norm),
)


FORMS = (form_of("functions/layer_norm", LAYER_NORM), form_of("functions/rms_norm", RMS_NORM))
