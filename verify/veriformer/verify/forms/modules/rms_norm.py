"""Root-mean-square normalisation as a module that holds its weight."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, Readings
from veriformer.verify.forms.norms import LAYER_NORM, match_norm, norm_called

_WORDS = ({"rms"}, {"rmsnorm"})


def _match(candidate: Candidate) -> Match | None:
    found = match_norm(candidate, ({"norm"},) if candidate.words == ("norm",) else _WORDS, biases=False)
    if found is not None or "bias" in candidate.constructor:
        return found
    # a layer norm without a bias may be this one, as in T5: the nearer of the two is
    return match_norm(candidate, LAYER_NORM, biases=False)


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    return norm_called("rms_norm", candidate, readings)


FORM = Form(
    name="modules/rms_norm",
    operation="rms_norm",
    says="a module with a weight, built from the width: norm(x)",
    match=_match,
    bind=_bind,
)
