"""Clipping of gradients by their norm in place: a function of parameters, whose ``grad`` it scales, or of gradients."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.signatures import roles

_PARAMS = ("params", "parameters", "model_parameters", "model_params", "parameter_list")
_GRADS = ("grads", "gradients", "grad_list", "gs", "dparams")
"""Names of a list of the gradients themselves."""

_LARGEST = (
    *(
        "max_norm",
        "max_l2_norm",
        "max_grad_norm",
        "maximum_norm",
        "max_gradient_norm",
        "norm_max",
        "clip_norm",
        "clip",
        "clip_at",
        "grad_clip",
        "threshold",
        "max_value",
    ),
    *("l2_norm", "norm", "M", "theta"),
)
_WORDS = ({"clip"}, {"clipping"}, {"clipped"})
_OF = {"grad", "grads", "gradient", "gradients"}
_NOT = {"value", "values", "adaptive", "agc"}
ZERO = ("the largest norm", "no clipping")
"""Meanings of a ``max_norm`` of 0."""


def _names(candidate: Candidate) -> dict[str, str] | None:
    return roles(candidate.parameters, {"params": (*_PARAMS, *_GRADS), "max_norm": _LARGEST})


def _match(candidate: Candidate) -> Match | None:
    own = set(candidate.words)
    if not candidate.is_function or not own & _OF or own & _NOT or not any(one <= own for one in _WORDS):
        return None
    names = _names(candidate)
    if names is None:
        return None
    params = names["params"]
    if params in _GRADS:
        return Match(True, {"zero": ZERO})
    told = "gradients are scaled in place, and what is returned is left out"
    given = (
        f"; {params} are given as a list and as module.parameters() gives them" if _takes_any(candidate, params) else ""
    )
    return Match(True, {"zero": ZERO}, (told + given,))


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., tuple[list[Tensor], Tensor]]:
    names = _names(candidate) or {}

    def call(grads: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
        if not all(isinstance(g, Tensor) and g.is_floating_point() for g in grads):
            raise NotOffered("grads: expected floating-point tensors")
        if max_norm == 0 and readings.get("zero") == ZERO[1]:
            raise NotOffered("max_norm: 0 means that nothing is clipped")
        if names["params"] in _GRADS:
            return clip_alone(grads, max_norm), _norm(grads)
        found = clip(grads, max_norm, list)
        if _takes_any(candidate, names["params"]):
            with contextlib.suppress(Exception):  # it asks for a length
                once = clip(grads, max_norm, iter)
                found = found if all(map(torch.equal, found, once)) else once
        return found, _norm(grads)

    def clip_alone(grads: Sequence[Tensor], max_norm: float) -> list[Tensor]:
        copies = [g.detach().clone() for g in grads]
        result = candidate.thing(**{names["params"]: copies, names["max_norm"]: max_norm})
        return _returned(result, copies) or copies

    def clip(grads: Sequence[Tensor], max_norm: float, given_as: Callable[[Any], Any]) -> list[Tensor]:
        params = [nn.Parameter(torch.zeros_like(g)) for g in grads]
        for p, g in zip(params, grads, strict=True):
            p.grad = g.detach().clone()
        given: dict[str, Any] = {names["params"]: given_as(params), names["max_norm"]: max_norm}
        if len(params) == 1 and _takes_one(candidate):
            given[names["params"]] = params[0]
        candidate.thing(**given)
        if len(params) < 2:  # runs what is for parameters without gradients, which changes no result
            with contextlib.suppress(Exception):
                beside = [nn.Parameter(torch.zeros_like(p)) for p in params]
                for p, other in zip(params, beside, strict=True):
                    other.grad = None if p.grad is None else p.grad.clone()
                candidate.thing(**{**given, names["params"]: [*beside, nn.Parameter(torch.zeros(1))]})
        return [p.grad if p.grad is not None else torch.zeros_like(p) for p in params]

    return as_operation("clip_grad_norm", call)


def _returned(result: Any, grads: Sequence[Tensor]) -> list[Tensor]:
    """Return the gradients that a function gives, alone or before their norm; none where it changes those given."""
    for found in (result, *(result if isinstance(result, tuple) else ())):
        if isinstance(found, list | tuple) and [getattr(x, "shape", None) for x in found] == [g.shape for g in grads]:
            return [*found]
    return []


def _takes_any(candidate: Candidate, name: str) -> bool:
    """Return whether parameters may come as ``module.parameters()`` gives them, once: by annotation, or by name."""
    p = candidate.parameters[name]
    if any(word in str(p.annotation) for word in ("Iterable", "Iterator", "Generator")):
        return True
    return name in _OF_MODULES and p.annotation is p.empty


_OF_MODULES = ("parameters", "model_parameters")


def _takes_one(candidate: Candidate) -> bool:
    """Return whether the code tests for a single tensor in place of several."""
    code = getattr(inspect.unwrap(candidate.thing), "__code__", None)
    return code is not None and {"isinstance", "Tensor"} <= set(code.co_names)


def _norm(grads: Sequence[Tensor]) -> Tensor:
    """Return the norm of all gradients together, seldom returned: the suite's own, single for halves."""
    whole = torch.cat([g.detach().double().flatten() for g in grads]) if grads else torch.zeros(1)
    norm: Tensor = torch.linalg.vector_norm(whole)
    dtype = grads[0].dtype if grads else torch.get_default_dtype()
    return norm.to(torch.float32 if dtype.itemsize < 4 else dtype)


def _clamped(grads: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    """Return each entry kept between -max_norm and max_norm, as by ``torch.nn.utils.clip_grad_value_``."""
    return [g.clamp(-max_norm, max_norm) for g in grads], _norm(grads)


def _settled(function: Callable[..., Any]) -> dict[str, str]:
    """Return the claim of code that leaves a gradient as long as the maximum, and adds 1e-6 to the norm of a longer."""
    try:
        same, longer = (float(function([torch.tensor([x], dtype=torch.float64)], 2.0)[0][0]) for x in (2.0, 4.0))
    except Exception:  # refused, for whatever reason
        return {}
    shorter = round((2.0 - longer) * 1e7)  # 4 · 2 / (4 + 1e-6) is 5e-7 less than 2
    return {"clip_grad_norm.denominator": "norm+1e-6 beyond max_norm"} if same == 2.0 and shorter == 5 else {}


FORM = Form(
    name="functions/clip_in_place",
    operation="clip_grad_norm",
    says="a function of parameters, or of gradients, and the largest norm, which scales the gradients in place",
    match=_match,
    bind=_bind,
    conventions=("clip_grad_norm.denominator",),
    rivals={"clipping of each entry by its value": _clamped},
    settled=_settled,
    closed=True,
)
