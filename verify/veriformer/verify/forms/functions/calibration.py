"""The expected calibration error of probabilities or logits, as a function, or a class with its bins or without."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.building import make_callable
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.holding import first
from veriformer.verify.forms.meanings import Parameters
from veriformer.verify.forms.named import names_nothing_else
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.score_domains import PROBS, TAKES, domain_of
from veriformer.verify.forms.signatures import LOGITS, TARGET, default_of, roles

_NAMES = ({"ece"}, {"expected", "calibration", "error"}, {"calibration", "error"}, {"calibration", "loss"})
_OTHERS = {"max", "maximum", "mce", "adaptive", "classwise", "static", "ace", "kernel", "rms", "marginal", "top"}
_NEEDED = {"probs": (*PROBS, *LOGITS, "confidences", "softmaxes"), "target": TARGET}
_BINS = {"num_bins": ("num_bins", "n_bins", "bins", "M", "nbins", "num_bin", "n_bin")}
_FLAG = {"logits": ("logits", "from_logits", "is_logits", "apply_softmax", "with_logits", "use_softmax")}
_METHODS = ("forward", "__call__", "loss", "compute", "calculate", "score")
"""Methods that give the error, the usual ones of classes first."""

_APART = 1e-4
"""Confidences given as logits are at least so far from the edge of a bin, in widths of it: a softmax is rounded."""


def _find_method(candidate: Candidate) -> str:
    """Return the method that gives the error; nothing for a function."""
    if not candidate.is_class:
        return ""
    return next((name for name in _METHODS if candidate.parameters_of(name)), _METHODS[0])


def _parameters(candidate: Candidate) -> Parameters:
    return candidate.parameters_of(_find_method(candidate)) if candidate.is_class else candidate.parameters


def _call_names(candidate: Candidate) -> dict[str, str] | None:
    found = _parameters(candidate)
    flags = {name: p for name, p in found.items() if isinstance(p.default, bool)}
    named = roles({name: p for name, p in found.items() if name not in flags}, _NEEDED, _BINS)
    flag = next((name for name in _FLAG["logits"] if name in flags), "")
    return None if named is None else {**named, **({"logits": flag} if flag else {})}


def _match(candidate: Candidate) -> Match | None:
    own = set(candidate.words)
    if candidate.is_module or not any(names <= own for names in _NAMES) or own & _OTHERS:
        return None
    names = _call_names(candidate)
    if names is None:
        return None
    return Match(True, {"takes": _list_domains(candidate, names)}, closed=names_nothing_else(candidate, _NAMES))


def _list_domains(candidate: Candidate, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the domains that may be passed, by the argument's name or documentation; both where a flag decides."""
    domain = domain_of(candidate, (names["probs"],)) if "logits" not in names and not candidate.is_class else ""
    stated = TAKES[0] if names["probs"] in ("logits", "logit") else domain
    return (stated,) if stated in TAKES[::2] else TAKES[::-2]


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    names, method = _call_names(candidate) or {}, _find_method(candidate)
    own = next((name for name in _BINS["num_bins"] if name in candidate.constructor), "")
    scores = readings.get("takes") == TAKES[0]

    def call(probs: Tensor, target: Tensor, *, num_bins: int = 15) -> Tensor:
        rows, flat = probs.reshape(-1, probs.shape[-1]), target.reshape(-1)
        if len(rows) != len(flat) or not rows.numel():
            raise NotOffered("target: one class for each row of probabilities is taken")
        if bool((rows.amax(-1) == 0).any()):
            raise NotOffered("probs: a row without any probability has no confidence")
        given: dict[str, Any] = {names["probs"]: _as_logits(rows, num_bins) if scores else rows, names["target"]: flat}
        given |= {names["num_bins"]: num_bins} if "num_bins" in names else {}
        given |= {names["logits"]: scores} if "logits" in names else {}
        result = first(
            make_callable(candidate, {own: num_bins} if own else {}, torch.get_default_dtype(), method)(**given)
        )
        found = result if isinstance(result, Tensor) else torch.tensor(float(result), dtype=torch.float64)
        if found.numel() != 1:
            raise NotOffered(f"expected one number, got shape {tuple(found.shape)}")
        return found.reshape(()).to(probs.dtype)

    bins = own or names.get("num_bins")
    default = default_of({**candidate.constructor, **_parameters(candidate)}, bins)
    defaults = {"num_bins": default} if isinstance(default, int) else {}
    options = ["num_bins"] if bins else []
    required = () if defaults else options
    return as_operation("expected_calibration_error", call, options, required=required, defaults=defaults)


def _as_logits(probs: Tensor, bins: int) -> Tensor:
    """Return logits in double precision whose softmax has the same largest entries; further classes share the rest."""
    p = probs.double()
    if probs.dtype == torch.float64:
        raise NotOffered("probs: a softmax is rounded as they are; coarser ones are taken")
    confidence, chosen = p.max(-1, keepdim=True)
    edges = confidence * bins
    if bool((confidence <= 0).any() | (confidence > 1).any() | ((edges - edges.round()).abs() < _APART).any()):
        raise NotOffered("probs: confidences inside a bin are taken, which no rounding of a softmax moves to another")
    more = int((1 / confidence).ceil().max()) + 1
    rest = (1 - confidence) / more
    whole = torch.zeros(len(p), p.shape[-1] + more, dtype=torch.float64).scatter_(1, chosen, confidence)
    whole[:, p.shape[-1] :] = rest
    return whole.log()


FORM = Form(
    name="functions/calibration",
    operation="expected_calibration_error",
    says="ece(probabilities, target), or of logits, as a function or a class with its bins",
    neutral=("takes",),
    match=_match,
    bind=_bind,
)
