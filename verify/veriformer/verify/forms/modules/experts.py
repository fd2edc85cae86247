"""A mixture of experts as a module: a router, and networks of two layers, or gated ones, that are its experts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.construction import built, flags, takes_size
from veriformer.verify.forms.expert_maps import Experts, experts_of
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings, Unfit
from veriformer.verify.forms.holding import Holder, call_with_weights, first
from veriformer.verify.forms.modules.swiglu import GATES
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.signatures import first_input

_WORDS = (
    {"moe"},
    {"mo", "e"},
    {"mixture", "experts"},
    {"mixture", "of", "experts"},
    {"sparse", "experts"},
    {"expert", "layer"},
)
EXPERTS = ("GELU", "SwiGLU")
_EXPERTS, _WIDTH, _INNER = 3, 6, 20
ROWS = ("[1,n,d]", "[n,d]")
"""Forms of tokens."""


def _match(candidate: Candidate) -> Match | None:
    if not candidate.is_network or not any(names <= set(candidate.words) for names in _WORDS):
        return None
    if first_input(candidate.parameters) is None:
        return None
    found = _sample(candidate)
    told = ("its experts and its router are the suite's own",) if _given_parts(candidate) else ()
    gate = GATES if found.gated and len(found.into) == 2 and not found.gate else _known_gate(found)
    of_experts = {"mixture_of_experts.experts": EXPERTS[found.gated]}
    return Match(True, {"gate": gate, "rows": ROWS}, told, of_experts)


def _known_gate(found: Experts) -> tuple[str, ...]:
    """Return which map is the gate: by its name, else the first of a joined map, or of experts without a gate."""
    if len(found.into) == 1:
        return GATES if found.gated else GATES[:1]
    names = [one.name for one in found.into]
    return (GATES[names.index(found.gate)],)


def _sizes(width: int, inner: int, experts: int, top_k: int) -> dict[str, int]:
    return {"width": width, "out": width, "inner": inner, "experts": experts, "top_k": top_k}


def _sample(candidate: Candidate) -> Experts:
    sizes = _sizes(_WIDTH, _INNER, _EXPERTS, 2)
    given = {**flags(candidate), **_make_parts(candidate, _WIDTH, _INNER, _EXPERTS, torch.float32)}
    made = built(candidate, sizes, given)
    if not isinstance(made, nn.Module):
        raise Unfit("it builds no module")
    return experts_of(made, _EXPERTS, _WIDTH)


def _given_parts(candidate: Candidate) -> dict[str, str]:
    """Return by what they are, experts and router, the arguments of the constructor that are networks."""
    asked = [name for name, p in candidate.constructor.items() if p.default is p.empty and _is_network(p)]
    every = {name: set(words(name)) for name in asked}
    found = {"experts": [name for name, own in every.items() if "experts" in own]}
    found["router"] = [name for name, own in every.items() if own & {"gate", "router"}]
    return {what: names[0] for what, names in found.items() if names}


def _is_network(p: inspect.Parameter) -> bool:
    return "Module" in str(p.annotation) or (p.annotation is p.empty and p.name in ("experts", "gate", "router"))


def _make_parts(candidate: Candidate, d: int, f: int, experts: int, dtype: torch.dtype) -> dict[str, nn.Module]:
    """Return experts and router of the suite's own, where the constructor is given them."""
    asked = _given_parts(candidate)
    key = d, f, experts, dtype
    if asked and key not in _MADE:
        with torch.random.fork_rng():
            two = [nn.Sequential(nn.Linear(d, f), nn.GELU(), nn.Linear(f, d)) for _ in range(experts)]
            _MADE[key] = {
                "experts": nn.ModuleList(two).to(dtype),
                "router": nn.Linear(d, experts, bias=False).to(dtype),
            }
    return {name: _MADE[key][what] for what, name in asked.items()}


_MADE: dict[Any, Mapping[str, nn.Module]] = {}


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    counted, sample = takes_size(candidate, "top_k"), _sample(candidate)

    def call(
        x: Tensor, router: Tensor, w1: Tensor, b1: Tensor | None, w2: Tensor, b2: Tensor | None, *, top_k: int = 2
    ) -> Tensor:
        (d, experts), o = router.shape, w2.shape[2]
        if x.shape[-1] != d or w1.shape[1] != d:
            raise NotOffered("x, router, w1: expected [..., d], [d, E], [E, d, h]")
        if sample.gated != (b1 is None):
            raise NotOffered(f"b1: its experts are {'gated' if sample.gated else 'not gated'}")
        f, width = w2.shape[1], max(d, o)  # the module gives as many numbers as it takes: the others are zeros
        given = {**flags(candidate), **_make_parts(candidate, width, f, experts, x.dtype)}
        module = Holder.of(candidate).module(_sizes(width, f, experts, top_k), x.dtype, **given)
        try:
            own = experts_of(module, experts, width, sample)
        except Unfit as reason:
            raise NotOffered(str(reason)) from reason
        if b1 is None and readings["gate"] == GATES[1]:
            w1 = torch.cat(w1.chunk(2, 2)[::-1], 2)
        rows = nn.functional.pad(x.reshape(1, -1, d), (0, width - d))
        rows = rows[0] if readings["rows"] == ROWS[1] else rows
        result: Tensor = first(call_with_weights(module, own.tensors(router, w1, b1, w2, b2), rows))
        return result.reshape(*x.shape[:-1], width)[..., :o]

    return as_operation("mixture_of_experts", call, ["top_k"] if counted else [])


def _other(
    x: Tensor,
    router: Tensor,
    w1: Tensor,
    b1: Tensor | None,
    w2: Tensor,
    b2: Tensor | None,
    *,
    top_k: int = 2,
    activation: Callable[[Tensor], Tensor],
    gates: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    """Compute a mixture with another activation, or other gates, from all scores and which of them are chosen."""
    if activation is (functional.silu if b1 is None else functional.gelu) and gates in _CONVENTIONS:
        raise ValueError("expected another activation or other gates than the contract's")
    scores = x @ router
    chosen = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, scores.topk(top_k, -1).indices, True)
    z = x.unsqueeze(-2).unsqueeze(-2) @ w1
    z = z if b1 is None else z + b1.unsqueeze(-2)
    gate, value = z.chunk(2, -1) if b1 is None else (z, 1)
    answers = (activation(gate) * value @ w2).squeeze(-2)
    return (gates(scores, chosen).unsqueeze(-1) * (answers if b2 is None else answers + b2)).sum(-2)


def _share(odds: Tensor, chosen: Tensor) -> Tensor:
    kept = odds.where(chosen, 0)
    return kept / kept.sum(-1, keepdim=True)


_ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "GELU": functional.gelu,
    "GELU's approximation by tanh": partial(functional.gelu, approximate="tanh"),
    "SiLU": functional.silu,
    "ReLU": torch.relu,
    "the sigmoid": torch.sigmoid,
}
_GATES: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "gates by softmax": lambda scores, chosen: _share(scores.softmax(-1), chosen),
    "gates of all by softmax": lambda scores, chosen: scores.softmax(-1).where(chosen, 0),
    "gates by the sigmoid": lambda scores, chosen: _share(scores.sigmoid(), chosen),
    "gates of all by the sigmoid": lambda scores, chosen: scores.sigmoid().where(chosen, 0),
}
_CONVENTIONS = tuple(_GATES.values())[:2]
RIVALS = {
    f"experts with {name} and {how}": partial(_other, activation=function, gates=gates)
    for name, function in _ACTIVATIONS.items()
    for how, gates in _GATES.items()
}
"""Mixtures of other kinds, which have the same structure."""

FORM = Form(
    name="modules/experts",
    operation="mixture_of_experts",
    says="a module of a router and experts of two layers, or gated ones, built from its sizes: mixture(x)",
    conventions=("mixture_of_experts.gates", "mixture_of_experts.experts", "choice.ties"),
    neutral=("gate", "rows"),
    closed=True,
    rivals=RIVALS,
    match=_match,
    bind=_bind,
)
