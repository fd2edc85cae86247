"""Log-probabilities of targets under logits, one for each: the terms of a cross-entropy by their opposite sign."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.holding import first
from veriformer.verify.forms.named import names_nothing_else
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.signatures import LOGITS, TARGET, roles

_LOG = (
    {"log", "softmax"},
    {"log", "probs"},
    {"log", "prob"},
    {"log", "probabilities"},
    {"logprobs"},
    {"logps"},
    {"logp"},
)
_OF_TARGETS = {"selective", "selected", "gather", "gathered", "target", "label", "token", "per", "of", "from", "logits"}
"""Words of a name that say of what the log-probabilities are."""

_OTHERS = {"gumbel", "sum", "ratio", "sequence", "seq", "kl", "sample", "topk", "top", "masked", "batch", "mean"}
_NEEDED = {"logits": LOGITS, "target": (*TARGET, "index", "indices", "input_ids", "token_ids", "tokens", "ids")}
SHAPES = ("any", "sequences", "rows")


def _match(candidate: Candidate) -> Match | None:
    own = set(candidate.words)
    if not candidate.is_function or own & _OTHERS or not any(words <= own for words in _LOG):
        return None
    if roles(candidate.parameters, _NEEDED) is None:
        return None
    told = ("its terms are taken by their opposite sign, and reduced by the suite",)
    return Match(True, {"shape": SHAPES}, told, closed=names_nothing_else(candidate, (*_LOG, _OF_TARGETS)))


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    names = roles(candidate.parameters, _NEEDED) or {}

    def call(logits: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
        if target.is_floating_point() or target.shape != logits.shape[:-1]:
            raise NotOffered("target: classes are taken")
        x, ids = logits, target
        if readings["shape"] != SHAPES[0]:
            lead = (1, -1) if readings["shape"] == SHAPES[1] else (-1,)
            x, ids = x.reshape(*lead, x.shape[-1]), ids.reshape(*lead)
        given: dict[str, Any] = {names["logits"]: x, names["target"]: ids}
        terms: Tensor = -first(candidate.thing(**given)).reshape(target.shape)
        if reduction == "none":
            return terms
        total: Tensor = terms.double().sum()
        of_one = max(target.numel(), 1) if reduction == "mean" else 1
        return (total / of_one).to(terms.dtype)

    return as_operation("cross_entropy", call, ["reduction"])


FORM = Form(
    name="functions/target_log_probs",
    operation="cross_entropy",
    says="log_probs(logits, target): the log-probability of each target",
    neutral=("shape",),
    match=_match,
    bind=_bind,
)
