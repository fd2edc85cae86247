"""SwiGLU as a module: three linear maps, or two of which the first holds gate and value side by side."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.two_layers import around_hidden, instance, is_network_by_name, network_called, readings_of
from veriformer.verify.forms.weights import HELD, Linear, by_words, linears

_GATE = frozenset(("gate", "g"))
GATES = ("first", "second")
"""Map under the SiLU, of the two into the hidden layer in the order in which the module has them."""


def _match(candidate: Candidate) -> Match | None:
    if not is_network_by_name(candidate):
        return None
    parts = linears(instance(candidate))
    into, out = _roles(parts)
    if not into or out is None:
        return None
    return Match(True, {"gate": GATES, **readings_of(parts)})


def _roles(parts: list[Linear]) -> tuple[list[Linear], Linear | None]:
    """Return the maps into the hidden layer, the one by name of the gate first, and the one out of it."""
    into, out = around_hidden(parts) or ([], None)
    if out is None or any(part.n_in != out.n_out for part in into):
        return [], None
    if sum(part.n_out for part in into) != 2 * out.n_in:  # gate and value: side by side in one, or one each
        return [], None
    gate = by_words(into, {"gate": _GATE}).get("gate")
    return (into if gate is None else [gate, *(part for part in into if part is not gate)]), out


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    held = readings.get("held", HELD[0])
    into, out = _roles(linears(instance(candidate), held))
    names = [part.name for part in into], "" if out is None else out.name

    def call(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor) -> Tensor:
        if w_gate.shape != w_up.shape or x.shape[-1] != w_up.shape[0] or w_up.shape[1] != w_down.shape[0]:
            raise NotOffered("x, w_gate, w_up, w_down: expected [..., d], [d, f], [d, f], [f, d_out]")
        both = (w_gate, w_up) if readings["gate"] == GATES[0] else (w_up, w_gate)

        def tensors(parts: list[Linear]) -> dict[str, Tensor]:
            by_name = {part.name: part for part in parts}
            into, out = [by_name[name] for name in names[0]], by_name[names[1]]
            if len(into) == 2:
                return into[0].tensors(both[0]) | into[1].tensors(both[1]) | out.tensors(w_down)
            half = into[0].n_out // 2 - w_up.shape[1]
            side_by_side = torch.cat([nn.functional.pad(w, (0, half)) for w in both], 1)
            return into[0].tensors(side_by_side) | out.tensors(w_down)

        return network_called(candidate, (*w_up.shape, w_down.shape[1]), tensors, x, held)

    return as_operation("swiglu", call)


def _rival(name: str, function: Callable[[Tensor], Tensor]) -> tuple[str, Callable[..., Tensor]]:
    return name, lambda x, w_gate, w_up, w_down: (function(x @ w_gate) * (x @ w_up)) @ w_down


RIVALS = dict(
    (
        _rival("a gate through GELU", nn.functional.gelu),
        _rival("a gate through GELU's approximation by tanh", lambda z: nn.functional.gelu(z, approximate="tanh")),
        _rival("a gate through ReLU", torch.relu),
        _rival("a gate through the sigmoid", torch.sigmoid),
    )
)
"""Gated networks of other kinds, which have the same structure."""

FORM = Form(
    name="modules/swiglu",
    operation="swiglu",
    says="a module of three linear maps, one of them a gate: network(x)",
    neutral=("gate", "held"),
    closed=True,
    match=_match,
    bind=_bind,
    rivals=RIVALS,
)
