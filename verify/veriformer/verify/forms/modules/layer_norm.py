"""Layer normalisation as a module that holds its weight and, perhaps, its bias."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, Readings
from veriformer.verify.forms.norms import LAYER_NORM, match_norm, norm_called


def _match(candidate: Candidate) -> Match | None:
    if "rms" in candidate.words:
        return None
    if candidate.words == ("norm",):  # which of the two it is, its parameters say
        return match_norm(candidate, ({"norm"},), biases=True, bias_due=True)
    return match_norm(candidate, ({"ln"},) if candidate.words == ("ln",) else LAYER_NORM, biases=True)


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    return norm_called("layer_norm", candidate, readings)


FORM = Form(
    name="modules/layer_norm",
    operation="layer_norm",
    says="a module with a weight and a bias, built from the width: norm(x)",
    match=_match,
    bind=_bind,
)
