"""A mixture of experts as a module: a router, and networks of two layers that are its experts."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.construction import built, flags, takes_size
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings, Unfit
from veriformer.verify.forms.holding import Holder, called, first
from veriformer.verify.forms.offering import offered
from veriformer.verify.forms.signatures import first_input
from veriformer.verify.forms.weights import Linear, linears

_WORDS = (
    {"moe"},
    {"mo", "e"},
    {"mixture", "experts"},
    {"mixture", "of", "experts"},
    {"sparse", "experts"},
    {"expert", "layer"},
)
_EXPERTS = 3


def _match(candidate: Candidate) -> Match | None:
    if not candidate.is_network or not any(names <= set(candidate.words) for names in _WORDS):
        return None
    if first_input(candidate.parameters) is None:
        return None
    _roles(linears(_built(candidate)), _EXPERTS)
    return Match(True)


def _sizes(width: int, inner: int, experts: int, top_k: int) -> dict[str, int]:
    return {"width": width, "out": width, "inner": inner, "experts": experts, "top_k": top_k}


def _built(candidate: Candidate) -> nn.Module:
    made = built(candidate, _sizes(6, 20, _EXPERTS, 2), flags(candidate))
    if not isinstance(made, nn.Module):
        raise Unfit("it builds no module")
    return made


def _roles(parts: list[Linear], experts: int) -> tuple[Linear, list[Linear], list[Linear]]:
    """The router, and the first and the second maps of all experts. Raises Unfit where there are others."""
    routers = [part for part in parts if part.n_out == experts]
    others = [part for part in parts if not routers or part is not routers[0]]
    if not routers or len(others) != 2 * experts:
        raise Unfit(f"it has {len(parts)} linear maps, not a router and two for each of {experts} experts")
    into, out = others[0::2], others[1::2]
    if any(a.n_out != b.n_in or not (a.bias and b.bias) for a, b in zip(into, out, strict=True)):
        raise Unfit("its experts are not networks of two layers with biases")
    return routers[0], into, out


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    counted = takes_size(candidate, "top_k")

    def call(x: Tensor, router: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, *, top_k: int = 2) -> Tensor:
        d, experts = router.shape
        f, o = w1.shape[2], w2.shape[2]
        if o != d:
            raise NotOffered("w2: the module gives as many numbers as it takes")
        module = Holder.of(candidate).module(_sizes(d, f, experts, top_k), x.dtype, **flags(candidate))
        try:
            gate, into, out = _roles(linears(module), experts)
        except Unfit as reason:
            raise NotOffered(str(reason)) from reason
        tensors = gate.tensors(router)
        for i, (a, b) in enumerate(zip(into, out, strict=True)):
            tensors |= a.tensors(w1[i], b1[i]) | b.tensors(w2[i], b2[i])
        rows = x.reshape(1, -1, d)
        result: Tensor = first(called(module, tensors, rows))
        return result.reshape(*x.shape[:-1], o)

    return offered("mixture_of_experts", call, ["top_k"] if counted else [])


FORM = Form(
    name="modules/experts",
    operation="mixture_of_experts",
    says="a module of a router and experts of two layers, built from its sizes: mixture(x)",
    conventions=("mixture_of_experts.gates",),
    match=_match,
    bind=_bind,
)
