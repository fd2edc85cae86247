"""The last layer of a language model as a module: one linear map from the width to the vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.construction import built
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.holding import Holder, call_with_weights, first
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.signatures import first_input
from veriformer.verify.forms.weights import HELD, Linear, linears

_NAMES = (
    *({"unembed"}, {"unembedding"}, {"lm", "head"}, {"language", "head"}, {"generator"}, {"output", "head"}),
    *({"projection", "layer"}, {"output", "projection"}, {"output", "layer"}, {"vocab", "head"}),
)
_WIDTH, _VOCABULARY = 6, 11


def _match(candidate: Candidate) -> Match | None:
    if not candidate.is_network or not any(names <= set(candidate.words) for names in _NAMES):
        return None
    if first_input(candidate.parameters) is None:
        return None
    instance = built(candidate, _sizes(_WIDTH, _VOCABULARY), _weights(candidate, _WIDTH, _VOCABULARY))
    if len([p for p in instance.parameters() if p.ndim > 1]) != 1:
        return None
    head = _head(linears(instance, _held(instance)))
    return None if head is None else Match(True, told=("its bias is held at 0",) if head.bias else ())


def _sizes(width: int, vocabulary: int) -> dict[str, int]:
    return {"width": width, "vocabulary": vocabulary, "out": vocabulary}


def _weights(candidate: Candidate, width: int, vocabulary: int) -> dict[str, nn.Parameter]:
    """Return the weight of an embedding if the constructor takes one: the head is tied to it."""
    asked = [name for name, p in candidate.constructor.items() if p.default is p.empty and _WEIGHTS & set(words(name))]
    return {name: _table(width, vocabulary) for name in asked}


@cache
def _table(width: int, vocabulary: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(vocabulary, width))


_WEIGHTS = {"weight", "weights"}


def _held(module: torch.nn.Module) -> str:
    """Return the orientation of the matrix: by its shape, where width and vocabulary are known and differ."""
    matrix = next(p for p in module.parameters() if p.ndim > 1)
    return HELD[0] if matrix.shape[0] < matrix.shape[1] else HELD[1]


def _head(parts: list[Linear]) -> Linear | None:
    fits = len(parts) == 1 and (parts[0].n_in, parts[0].n_out) == (_WIDTH, _VOCABULARY)
    return parts[0] if fits else None


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    own = _weights(candidate, _WIDTH, _VOCABULARY)
    held = _held(built(candidate, _sizes(_WIDTH, _VOCABULARY), own))

    def call(h: Tensor, weight: Tensor) -> Tensor:
        if weight.ndim != 2 or h.shape[-1:] != weight.shape[1:]:
            raise NotOffered("h, weight: expected [..., d], [V, d]")
        vocabulary, width = weight.shape
        tied = _weights(candidate, width, vocabulary)
        module = Holder.of(candidate).module(_sizes(width, vocabulary), weight.dtype, **tied)
        (part,) = linears(module, held)
        result: Tensor = first(call_with_weights(module, part.tensors(weight.T), h))
        return result

    return as_operation("lm_head", call)


FORM = Form(
    name="modules/lm_head",
    operation="lm_head",
    says="a module of one linear map, built from width and vocabulary: head(h)",
    match=_match,
    bind=_bind,
    closed=True,
    rivals={"a logarithm of the softmax": lambda h, weight: torch.log_softmax(h @ weight.T, -1)},
)
