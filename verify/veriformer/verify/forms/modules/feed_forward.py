"""The feed-forward network as a module of two linear maps with an activation between them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings, Unfit
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.two_layers import (
    OTHER_ACTIVATIONS,
    instance,
    is_network_by_name,
    network_called,
    readings_of,
)
from veriformer.verify.forms.weights import HELD, linears
from veriformer.verify.forms.without_biases import TOLD, widen_with_biases


def _network(function: Callable[[Tensor], Tensor], x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    return function(x @ w1 + b1) @ w2 + b2


def _match(candidate: Candidate) -> Match | None:
    if not is_network_by_name(candidate):
        return None
    parts = linears(instance(candidate))
    if len(parts) != 2:
        return None
    if parts[0].n_out != parts[1].n_in:
        raise Unfit(f"its second layer takes {parts[1].n_in} of the first one's {parts[0].n_out} numbers")
    if bool(parts[0].bias) != bool(parts[1].bias):
        raise Unfit("one of its layers has a bias, and the other has none")
    return Match(True, readings_of(parts), () if parts[0].bias else (TOLD,))


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    biased = bool(linears(instance(candidate))[0].bias)

    def call(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
        if (x.shape[-1], w1.shape[1], *b1.shape, *b2.shape) != (w1.shape[0], w2.shape[0], w1.shape[1], w2.shape[1]):
            raise NotOffered("x, w1, b1, w2, b2: expected [..., d], [d, f], [f], [f, d_out], [d_out]")
        if not biased:
            x, w1, w2 = widen_with_biases(x, w1, b1, w2, b2)
        own = (b1, b2) if biased else (None, None)
        return network_called(
            candidate,
            (*w1.shape, w2.shape[1]),
            lambda parts: parts[0].tensors(w1, own[0]) | parts[1].tensors(w2, own[1]),
            x,
            readings.get("held", HELD[0]),
        )

    return as_operation("feed_forward", call)


FORM = Form(
    name="modules/feed_forward",
    operation="feed_forward",
    says="a module of two linear maps and an activation, built from its widths: network(x)",
    match=_match,
    bind=_bind,
    closed=True,
    neutral=("held",),
    rivals={
        "its input added to its result": lambda x, w1, b1, w2, b2: x + _network(nn.functional.gelu, x, w1, b1, w2, b2),
        **{f"{name} for its activation": partial(_network, function) for name, function in OTHER_ACTIVATIONS.items()},
    },
)
