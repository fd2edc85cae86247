"""Log-probabilities of all classes: at the targets, the terms of a cross-entropy by their opposite sign."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.building import make_callable
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.functions.scores import as_matrix, rows_of
from veriformer.verify.forms.holding import first
from veriformer.verify.forms.interleaving import interleave_rows
from veriformer.verify.forms.named import VARIANTS, names_nothing_else, words_of
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.signatures import LOGITS, TARGET, roles

_NAMES = words_of("log softmax", "logsoftmax")
_NEEDED = {"logits": LOGITS}
_AXIS = {"axis": ("dim", "axis")}
_OTHERS = VARIANTS | {"gumbel", "backward", "bwd", "grad", "masked"}


def _match(candidate: Candidate) -> Match | None:
    own = set(candidate.words)
    if not candidate.is_function or own & _OTHERS or not any(words <= own for words in _NAMES):
        return None
    if roles(candidate.parameters, {**_NEEDED, "target": TARGET}) or not roles(candidate.parameters, _NEEDED, _AXIS):
        return None
    told = ("judged at targets: their terms by the opposite sign, reduced by the suite",)
    return Match(True, rows_of(candidate), told, closed=names_nothing_else(candidate, _NAMES))


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    names = roles(candidate.parameters, _NEEDED, _AXIS) or {}

    def log_probs(logits: Tensor, axis: int) -> Tensor:
        given: dict[str, Any] = {names["logits"]: logits, **({names["axis"]: axis} if "axis" in names else {})}
        found: Tensor = first(make_callable(candidate, {}, logits.dtype)(**given))
        if found.shape != logits.shape:
            raise NotOffered(f"expected log-probabilities of shape {tuple(logits.shape)}, got {tuple(found.shape)}")
        return found

    def call(logits: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
        if target.is_floating_point() or target.shape != logits.shape[:-1]:
            raise NotOffered("target: classes are taken")
        rows = log_probs(as_matrix(logits, readings), -1).reshape(logits.shape)
        if "axis" in names and logits.ndim > 1:
            with torch.no_grad():
                first_axis = log_probs(logits.movedim(-1, 0), 0).movedim(0, -1)
            rows = interleave_rows(rows, [first_axis])
        terms = -rows.gather(-1, target[..., None].to(torch.int64))[..., 0]
        if reduction == "none":
            return terms
        total: Tensor = terms.double().sum()
        return (total / (max(target.numel(), 1) if reduction == "mean" else 1)).to(terms.dtype)

    return as_operation("cross_entropy", call, ["reduction"])


FORM = Form(
    name="functions/log_softmax",
    operation="cross_entropy",
    says="log_softmax(logits, dim): the log-probabilities of all classes",
    match=_match,
    bind=_bind,
)
