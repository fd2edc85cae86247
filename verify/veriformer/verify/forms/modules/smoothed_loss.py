"""Label smoothing as a class: a loss of scores and targets, or the distribution that stands for the targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.added_terms import with_squared_normaliser
from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.construction import built
from veriformer.verify.forms.form import Form, Match, Readings, Unfit
from veriformer.verify.forms.signatures import default_of, roles
from veriformer.verify.forms.smoothing import (
    SCORES,
    SMOOTH,
    TARGETS,
    Smoothing,
    loss_of,
    match_of,
    option_names,
)

_LOSSES = frozenset(("entropy", "crossentropy", "ce", "nll", "xent"))
"""Words of a loss, which may be smoothed where its constructor says so."""


_CLASSES = 6


def _match(candidate: Candidate) -> Match | None:
    own = set(candidate.words)
    if not candidate.is_network or own & {"l1", "l", "binary"}:
        return None
    said = own | {word for name in candidate.constructor if own & _LOSSES for word in words(name)}
    if not said & SMOOTH:
        return None
    call = _find_tensors(candidate)
    if call is None:
        return None
    found = option_names(candidate.constructor)
    if "smoothing" not in found:
        raise Unfit("its constructor has no smoothing by a name that is known")
    made = _made(candidate, found, {"classes": _CLASSES, "smoothing": 0.1, "ignored": _CLASSES - 1})
    if not isinstance(made, nn.Module) or next(made.parameters(), None) is not None:
        return None
    told = {"classes", "ignored"} <= found.keys() and call.keys() == {"logits", "target"}
    return match_of(candidate, call, found, looks_up=told and _looks_up(candidate, call, found))


def _looks_up(candidate: Candidate, call: Mapping[str, str], found: Mapping[str, str]) -> bool:
    """Return whether a loss over so many classes takes what it ignores for one of them, and no other number."""

    def answers(ignored: int) -> bool:
        loss = _made(candidate, found, {"classes": _CLASSES, "smoothing": 0.1, "ignored": ignored})
        given = {"logits": torch.zeros(2, _CLASSES).log_softmax(-1), "target": torch.tensor([1, ignored])}
        try:
            loss(**{name: given[role] for role, name in call.items()})
        except Exception:  # refused, for whatever reason
            return False
        return True

    return answers(_CLASSES - 1) and not answers(-100)


_LENGTHS = {"lengths": ("lengths", "seq_lengths", "target_lengths", "lens", "seq_lens")}


def _find_tensors(candidate: Candidate) -> dict[str, str] | None:
    """Return by role the arguments of a call: scores and targets, or one of targets alone."""
    found = roles(candidate.parameters, {"logits": SCORES, "target": TARGETS}, _LENGTHS)
    asked = [name for name, p in candidate.parameters.items() if p.default is p.empty]
    return {"target": asked[0]} if found is None and len(asked) == 1 else found


def _made(candidate: Candidate, found: Mapping[str, str], options: Mapping[str, Any]) -> Any:
    return built(candidate, {}, {name: options[role] for role, name in found.items() if role in options})


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    names, found = _find_tensors(candidate) or {}, option_names(candidate.constructor)

    def evaluate(call: dict[str, Any], options: dict[str, Any]) -> Any:
        module = _made(candidate, found, options).eval()
        return module(**{names[role]: x for role, x in call.items()})

    return loss_of(Smoothing(names, found, default_of(candidate.constructor, found["smoothing"]), evaluate), readings)


FORM = Form(
    name="modules/smoothed_loss",
    operation="cross_entropy",
    says="a class built from a smoothing, perhaps the classes and the padding: loss(input, target)",
    neutral=("shape", "ignored"),
    terms=with_squared_normaliser,
    match=_match,
    bind=_bind,
)
