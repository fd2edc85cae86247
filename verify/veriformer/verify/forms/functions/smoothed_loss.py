"""Label smoothing as a function of scores, targets and a smoothing, or a flag that switches one on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from veriformer.verify.forms.added_terms import with_squared_normaliser
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.candidate import words as words_of
from veriformer.verify.forms.form import Form, Match, Readings, Unfit
from veriformer.verify.forms.signatures import default_of, require_known, roles
from veriformer.verify.forms.smoothing import (
    OPTIONS,
    SCORES,
    SMOOTH,
    TARGETS,
    Smoothing,
    loss_of,
    match_of,
    option_names,
)

_LOSS = {"loss", "nll", "ce", "criterion", "crossentropy", "entropy", "xent", "nllloss"}
_MOST = 0.5
"""A share is less: a target keeps more than it gives away."""

_OTHERS = {"l1", "binary", "bce", "focal", "dice", "kd", "distillation"}


def _match(candidate: Candidate) -> Match | None:
    own = set(candidate.words)
    if not candidate.is_function or not own & _LOSS or own & _OTHERS:
        return None
    options = option_names(candidate.parameters)
    said = own | set(words_of(options.get("smoothing", "")))
    if "smoothing" not in options or not said & SMOOTH or (not own & SMOOTH and {"cross", "entropy"} <= own):
        return None
    call = _find_tensors(candidate)
    if call is None:
        return None
    require_known(candidate.parameters, [*call.values(), *options.values()])
    _find_share(candidate, options)
    return match_of(candidate, call, options)


def _find_tensors(candidate: Candidate) -> dict[str, str] | None:
    """Return by role the arguments of a call that are tensors."""
    needed = {"logits": SCORES, "target": TARGETS}
    asked = {name: p for name, p in candidate.parameters.items() if p.default is p.empty}
    found = roles(asked, needed, OPTIONS)
    return None if found is None else {role: found[role] for role in needed}


def _find_share(candidate: Candidate, options: Mapping[str, str]) -> float | None:
    """Return the share that is a constant of the code and that a flag switches on; None where the share is given.

    Raises Unfit where it may be several.
    """
    if not isinstance(default_of(candidate.parameters, options["smoothing"]), bool):
        return None
    code = getattr(inspect.unwrap(candidate.thing), "__code__", None)
    found = {x for x in (code.co_consts if code is not None else ()) if type(x) is float and 0 < x < _MOST}
    if len(found) != 1:
        raise Unfit(f"its smoothing is a flag, and its own share may be {sorted(found) or 'any'}")
    return found.pop()


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    call, options = _find_tensors(candidate) or {}, option_names(candidate.parameters)
    default = default_of(candidate.parameters, options["smoothing"])

    def evaluate(given: dict[str, Any], chosen: dict[str, Any]) -> Any:
        named = {options[role]: x for role, x in chosen.items() if role in options}
        return candidate.thing(**{call[role]: x for role, x in given.items()}, **named)

    optional = default_of(candidate.parameters, options.get("ignored")) is None
    return loss_of(Smoothing(call, options, default, evaluate, _find_share(candidate, options), optional), readings)


FORM = Form(
    name="functions/smoothed_loss",
    operation="cross_entropy",
    says="loss(input, target, smoothing), over logits or log-probabilities",
    neutral=("shape", "ignored", "over"),
    terms=with_squared_normaliser,
    match=_match,
    bind=_bind,
)
