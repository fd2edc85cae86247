"""The logarithm of a sum of exponentials, along an axis that is dropped or kept with one entry."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Match, Readings
from veriformer.verify.forms.functions.scores import DIM, Z
from veriformer.verify.forms.named import Known, form_of, words_of

KEPT = "kept"
"""The axis of a sum that is kept with one entry, as NumPy's ``keepdims`` leaves it."""

_BY_NAME = form_of("functions/logsumexp", Known("logsumexp", words_of("logsumexp", "log sum exp"), Z, DIM))


def _match(candidate: Candidate) -> Match | None:
    found = _BY_NAME.match(candidate)
    if found is None:
        return None
    try:
        kept = _BY_NAME.bind(candidate, {})(torch.zeros(2, 3), dim=1).shape == (2, 1)
    except Exception:  # refused, for whatever reason
        kept = False
    return replace(found, readings={**found.readings, "axis": (KEPT,)}) if kept else found


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Any]:
    function = _BY_NAME.bind(candidate, readings)
    if readings.get("axis") != KEPT:
        return function

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Tensor:
        given = signature.bind(*arguments, **options)
        given.apply_defaults()
        result: Tensor = function(*given.args, **given.kwargs)
        return result.squeeze(given.arguments.get("dim", -1))

    signature = call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return call


FORM = replace(_BY_NAME, match=_match, bind=_bind, neutral=("axis",))
