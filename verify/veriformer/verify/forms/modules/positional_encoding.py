"""Sinusoidal encodings as a module that adds them to its input, or gives them for its length."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.construction import built
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings, Unfit
from veriformer.verify.forms.holding import Holder, first
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.signatures import first_input
from veriformer.verify.forms.stated_shapes import stated_layout

_NAMES = ({"positional"}, {"position"}, {"pe"}, {"sinusoidal"}, {"pos"}, {"sinusoid"})
_OTHERS = {"learned", "learnable", "relative", "rotary", "wise", "feed", "bias", "multi", "attention"}
GIVES = ("the input and the encoding", "the encoding", "the input times √d and the encoding")
BATCH = ("[B,n,d]", "[n,B,d]", "ids [B,n]", "n")
"""Shapes of its input: rows in either layout, tokens, or their number alone."""

_LENGTH = 5120
"""Minimum number of positions of an instance: a single build serves most calls."""


def _match(candidate: Candidate) -> Match | None:
    words = set(candidate.words)
    if not candidate.is_network or words & _OTHERS or not any(names <= words for names in _NAMES):
        return None
    names = first_input(candidate.parameters)
    if names is None:
        return None
    made = built(candidate, _sizes(6))
    if not isinstance(made, nn.Module) or any(p.requires_grad for p in made.parameters()):
        raise Unfit("its positions are learned")
    return Match(True, {"gives": GIVES, "batch": stated_layout(candidate, names["x"], BATCH)})


def _sizes(width: int, length: int = 0) -> dict[str, int]:
    return {"width": width, "length": max(length, _LENGTH)}


def _zeros(texts: int, n: int, width: int, batch: str) -> Tensor:
    """Return so many texts of n tokens, or of rows of zeros, in the layout of a reading."""
    if batch == "ids [B,n]":
        return torch.zeros(texts, n, dtype=torch.int64)
    x = torch.zeros(texts, n, width, dtype=torch.get_default_dtype())
    return x if batch == BATCH[0] else x.transpose(0, 1)


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    def call(num_positions: int, d_model: int) -> Tensor:
        dtype = torch.get_default_dtype()
        n = num_positions
        module = Holder.of(candidate).module(_sizes(d_model, n), dtype)
        if readings["batch"] == "n":
            if readings["gives"] != GIVES[1]:
                raise NotOffered("a number has no rows that anything could be added to")
            result: Tensor = first(module(n))
            return result[0] if result.ndim == 3 else result
        x = _zeros(2, n, d_model, readings["batch"])
        result = first(module(x))
        axis = int(readings["batch"] == "[n,B,d]")
        other: Tensor = first(module(_zeros(3, n, d_model, readings["batch"])))
        if result.ndim == other.ndim == 3 and other.shape[axis] not in (1, 3):
            return other  # of another number of texts than it was given, as a table that is kept may be
        if readings["gives"] == GIVES[2]:
            one = first(module(torch.ones_like(x))) - result
            if not bool((one - d_model**0.5).abs().max() < 0.1):
                raise NotOffered("the input is not scaled")
        if result.ndim == 3:
            result = result[:, 0] if readings["batch"] == "[n,B,d]" else result[0]
        elif readings["gives"] != GIVES[1]:
            raise NotOffered("the encoding alone comes out")
        return result

    return as_operation("sinusoidal_encoding", call)


FORM = Form(
    name="modules/positional_encoding",
    operation="sinusoidal_encoding",
    says="a module built from width and length that adds its encoding to the input, or gives it",
    neutral=("gives", "batch"),
    match=_match,
    bind=_bind,
)
