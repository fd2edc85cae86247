"""Attention as ``(query, key, value, mask=None, dropout=None)``, giving the result alone or with the weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.building import calling, own_sizes
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.construction import built
from veriformer.verify.forms.conventions import LAYOUTS, MASKS, hides_some, laid_out, mask_as
from veriformer.verify.forms.form import UNKNOWN, Form, Match, NotOffered, Readings, Unfit
from veriformer.verify.forms.holding import first
from veriformer.verify.forms.offering import offered
from veriformer.verify.forms.signatures import KEY, MASK, QUERY, VALUE, roles

_OPTIONS = {
    "mask": MASK,
    "is_causal": ("is_causal", "causal"),
    "scale": ("scale", "softmax_scale", "sm_scale", "scaling"),
    "softcap": ("softcap", "logit_cap", "soft_cap", "logits_soft_cap"),
    "window": ("window", "sliding_window", "window_size"),
    "bias": ("bias", "attn_bias", "attention_bias"),
}
_WIDTH = {"width": ("d_k", "dk", "dim_k", "head_dim")}
"""What some functions are told though their queries say it."""

_WORDS = {"attention", "attn", "sdpa", "sdp"}
_AXES = ("[B,H,n,n]", "[B,n,n]", "[n,n]")


def _match(candidate: Candidate) -> Match | None:
    if not (candidate.is_function or candidate.is_class):
        return None
    found = roles(candidate.parameters, {"q": QUERY, "k": KEY, "v": VALUE}, {**_OPTIONS, **_WIDTH})
    if found is None or not _weightless(candidate):
        return None
    readings: dict[str, tuple[str, ...]] = {"layout": LAYOUTS}
    if "mask" in found:
        readings |= {"mask": MASKS, "mask_axes": _AXES}
    named = bool(_WORDS & set(candidate.words)) or {"dot", "product"} <= set(candidate.words)
    return Match(named, readings)


def _weightless(candidate: Candidate) -> bool:
    """Whether it is a function, or a class whose instances hold no weights."""
    if not candidate.is_class:
        return True
    sizes = {"temperature": 2.0, "head_dim": 4}
    try:
        made = built(candidate, sizes, own_sizes(candidate, sizes)) if candidate.is_network else None
    except Unfit:
        return False
    return isinstance(made, nn.Module) and next(made.parameters(), None) is None


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Any]:
    names = roles(candidate.parameters, {"q": QUERY, "k": KEY, "v": VALUE}, {**_OPTIONS, **_WIDTH}) or {}
    if readings.get("mask") == UNKNOWN:
        del names["mask"]
    options = {role: name for role, name in names.items() if role in _OPTIONS}

    def call(q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Tensor:
        theirs: dict[str, Any] = {
            names[role]: laid_out(x, readings["layout"]) for role, x in (("q", q), ("k", k), ("v", v))
        }
        if "width" in names:
            theirs[names["width"]] = q.shape[-1]
        for role, value in given.items():
            if role == "mask" and value is not None:
                theirs[names[role]] = _mask(value, q, k, readings)
            elif value is not None and value is not False:
                theirs[names[role]] = value
        function = calling(candidate, {"temperature": q.shape[-1] ** 0.5, "head_dim": q.shape[-1]}, q.dtype)
        result: Tensor = first(function(**theirs))
        return laid_out(result, readings["layout"])

    if "window" in options and "is_causal" not in options:
        del options["window"]
    demanded = "mask" in names and candidate.parameters[names["mask"]].default is inspect.Parameter.empty
    return offered("attention", _unmasked(call) if demanded else call, options)


def _unmasked(call: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Where their mask has no default, one that hides nothing stands for none."""

    def with_mask(q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, **given: Any) -> Tensor:
        everything = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device)
        return call(q, k, v, mask=everything if mask is None else mask, **given)

    return with_mask


def _mask(mask: Tensor, q: Tensor, k: Tensor, readings: Readings) -> Tensor:
    """Their mask: expanded to the axes that they read."""
    b, h, n_q, n_k = *q.shape[:-1], k.shape[-2]
    if mask.dtype != torch.bool:
        raise NotOffered("mask: expected bool")
    whole = torch.broadcast_to(mask, (b, h, n_q, n_k))
    if readings["mask_axes"] != "[B,H,n,n]":
        if mask.ndim > 2 and mask.shape[-3] > 1:
            raise NotOffered("mask: one for each head is not taken")
        whole = whole[:, 0]
    if readings["mask_axes"] == "[n,n]":
        if mask.ndim == 4 and mask.shape[0] > 1:
            raise NotOffered("mask: one for each batch element is not taken")
        whole = whole[0]
    return mask_as(whole, readings["mask"], q.dtype)


FORM = Form(
    name="functions/qkv_attention",
    operation="attention",
    says="(query, key, value, mask=None, …) → the result, or (result, weights)",
    neutral=("mask_axes",),
    told_by={"mask": lambda candidate, arguments: hides_some(arguments.get("mask"))},
    match=_match,
    bind=_bind,
    conventions=("causal.alignment",),
)
