"""SwiGLU without its linear maps: what kernels fuse is the product of SiLU of a gate and a value."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import torch
from torch import Tensor

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings, Unfit
from veriformer.verify.forms.modules.swiglu import GATES, RIVALS
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.signatures import default_of

_NOT = frozenset(("backward", "bwd", "grad", "dswiglu", "kernel", "mlp", "ffn", "block", "layer", "quant", "linear"))
_OPTION = re.compile("out|dim|axis|limit|alpha|beta|block|num_warps|inplace")

_RESULTS = ("first", "last")
"""Position of the product among several results: kernels return beside it what their backward pass reads."""


def _match(candidate: Candidate) -> Match | None:
    words = set(candidate.words)
    named = "swiglu" in words or {"silu", "mul"} <= words or {"swish", "mul"} <= words
    if not candidate.is_function or not named or words & _NOT:
        return None
    inputs = _inputs(candidate)
    if len(inputs) not in (1, 2):
        return None
    told = "the linear maps before and after it are the suite's own"
    return Match(True, {"gate": GATES, "result": _RESULTS}, (told,))


def _inputs(candidate: Candidate) -> list[str]:
    """Return the names of the tensors required: a gate and a value, or both concatenated along the last axis."""
    names = [name for name in candidate.parameters if default_of(candidate.parameters, name) is _EMPTY]
    asked = [name for name in names if candidate.parameters[name].kind not in _MANY]
    options = [name for name in asked if _OPTION.match(name)]
    if options:
        raise Unfit(f"it asks for {options[0]!r}, for which no value is known: give it a default")
    return asked


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    both = len(_inputs(candidate)) == 2

    def call(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor) -> Tensor:
        if w_gate.shape != w_up.shape or x.shape[-1] != w_up.shape[0] or w_up.shape[1] != w_down.shape[0]:
            raise NotOffered("x, w_gate, w_up, w_down: expected [..., d], [d, f], [d, f], [f, d_out]")
        pair = [x @ w_gate, x @ w_up]
        given = pair if readings["gate"] == GATES[0] else pair[::-1]
        found = candidate.thing(*given) if both else candidate.thing(torch.cat(given, -1))
        if isinstance(found, tuple | list):
            found = found[0 if readings["result"] == _RESULTS[0] else -1]
        if not isinstance(found, Tensor) or found.shape != pair[1].shape:
            raise ValueError(f"expected a product of shape {tuple(pair[1].shape)}, got {_shown(found)}")
        forward_only = not found.requires_grad and any(one.requires_grad for one in pair)
        return found @ (w_down.detach() if forward_only else w_down)  # else w_down alone would have a gradient

    return as_operation("swiglu", call)


def _shown(found: object) -> str:
    return f"one of shape {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__


_EMPTY = default_of({}, None)
_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

FORM = Form(
    name="functions/gated_product",
    operation="swiglu",
    says="a function of a gate and a value, or of both side by side: silu(gate) * value",
    neutral=("gate", "result"),
    match=_match,
    bind=_bind,
    rivals=RIVALS,
)
