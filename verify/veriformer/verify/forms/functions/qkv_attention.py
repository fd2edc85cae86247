"""Attention as ``(query, key, value, mask=None, dropout=None)``, giving the result alone or with the weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.attention_calls import ALWAYS
from veriformer.verify.forms.building import make_callable, own_sizes
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.causality import CAUSALITY, causality_of_function
from veriformer.verify.forms.construction import built
from veriformer.verify.forms.conventions import LAYOUTS, MASKS, hides_some, laid_out, mask_as
from veriformer.verify.forms.form import UNKNOWN, Form, Match, NotOffered, Readings, Unfit, UnknownArgument
from veriformer.verify.forms.holding import first
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.signatures import KEY, MASK, QUERY, VALUE, by_words, roles, unknown_needed
from veriformer.verify.forms.stated_shapes import agreeing_layouts, stated_axes

_OPTIONS = {
    "mask": MASK,
    "is_causal": ("is_causal", "causal"),
    "scale": ("scale", "softmax_scale", "sm_scale", "scaling", "scale_factor", "scaling_factor"),
    "softcap": ("softcap", "logit_cap", "soft_cap", "logits_soft_cap"),
    "window": ("window", "sliding_window", "window_size"),
    "bias": ("bias", "attn_bias", "attention_bias"),
}
_TOLD = {
    "width": ("d_k", "dk", "dim_k", "head_dim"),
    "heads": ("heads", "num_heads", "n_heads", "n_head", "nhead", "num_attention_heads"),
    "groups": ("kv_heads", "num_kv_heads", "n_kv_heads", "n_kv_head", "num_key_value_heads"),
    "module": ("module",),
}
"""Sizes that some functions are told though their queries say them, or of queries whose heads stand side by side.

module: the layer that calls the function, of which it reads numbers of heads.
"""

JOINED = "[B,n,H·d]"
"""The layout of code that is told the number of heads, and takes them apart."""

SWAPPED = "axes 1 and 2 exchanged"
"""The layout of results where the two axes stand in the other order than in the queries."""

SCALES = ("1/√d_k by itself", "given in every call")
"""Meanings of a scale that is left out: 1/√d_k, which is always applied, or none, which is left to callers."""

SCALED = ("multiplied by it", "divided by it")
"""Scores by the scale that a function is told: some are told √d_k, and not its inverse."""

_TENSORS = {"q": QUERY, "k": KEY, "v": VALUE}
_WORDS = {"attention", "attn", "sdpa", "sdp"}
_OTHERS = {"linear", "performer", "additive", "bahdanau", "luong", "differential", "cosine", "latent"}
"""Words of attention by other mathematics, unless it turns out to be the same."""

_LEFT_OUT = ("bias", "softcap", "window")
"""Options that are None where a call has none, though the code demands them."""

_AXES = ("[B,H,n,n]", "[B,n,n]", "[n,n]")
_FLAT = {"[BH,n,d]": 3, "[n,d]": 2}
"""Layouts of code that knows no heads, with their rank: batch and heads are one axis, or each head is a call."""


def _match(candidate: Candidate) -> Match | None:
    if not (candidate.is_function or candidate.is_class):
        return None
    named = bool(_WORDS & set(candidate.words)) or {"dot", "product"} <= set(candidate.words)
    named = named and not _OTHERS & set(candidate.words)
    found = _roles(candidate)
    unknown = unknown_needed(candidate.parameters, _TENSORS) if found is None and named else None
    if unknown is not None and candidate.is_function:
        raise unknown
    if found is None or not _weightless(candidate):
        return None
    readings: dict[str, tuple[str, ...]] = {"layout": _layouts(candidate, found)}
    flat = readings["layout"][0] in _FLAT
    result = None if flat else _layout_of_result(candidate, found, readings["layout"])
    if result is not None:
        readings["result"] = (result,)
    causality = _causality(candidate, readings)
    if causality != CAUSALITY[:1]:
        readings["causal"] = causality
    if "mask" in found:
        readings |= {"mask": MASKS, "mask_axes": _AXES[:1] if flat else _AXES}
    if "scale" in found and _is_optional(candidate.parameters[found["scale"]].default):
        readings["scale"] = SCALES
    if "scale" in found:
        readings["scores"] = SCALED
    told = ("it is always causal, and is judged with is_causal=True alone",) if causality == (ALWAYS,) else ()
    return Match(named, readings, told)


def _layouts(candidate: Candidate, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the layouts to try: those of so many axes as are answered, that agree with a shape that is stated."""
    axes = stated_axes(candidate, names["q"])
    joined = (JOINED,) if "heads" in names and _answers(candidate, names, 3) else ()
    if _answers(candidate, names, 4):
        return (*joined, *agreeing_layouts(LAYOUTS, axes if len(axes) != 3 else ()))
    if joined:
        return joined
    flat = tuple(x for x in _FLAT if _answers(candidate, names, _FLAT[x]))
    return flat[:1] or agreeing_layouts(LAYOUTS, axes)


def _layout_of_result(candidate: Candidate, names: Mapping[str, str], layouts: tuple[str, ...]) -> str | None:
    """Return the layout of a result, where it is another than that of the queries; None where it is not."""
    if layouts[0] not in LAYOUTS:
        return None
    found = _plain(candidate, names, torch.zeros(1, 3, 2, 4))  # shapes as [B,H,n,d]: 3 heads, 2 queries
    shape = () if found is None else tuple(found.shape)
    return {(1, 2, 3, 4): SWAPPED, (1, 2, 12): JOINED, (1, 3, 8): JOINED}.get(shape)


def _is_optional(scale: Any) -> bool:
    """Return whether a default of the scale is a number, or none."""
    return scale is None or (isinstance(scale, int | float) and not isinstance(scale, bool))


def _roles(candidate: Candidate) -> dict[str, str] | None:
    return roles(candidate.parameters, by_words(candidate.parameters, _TENSORS), {**_OPTIONS, **_TOLD})


def _answers(candidate: Candidate, names: Mapping[str, str], rank: int) -> bool:
    """Return whether a plain call of tensors of this rank is answered, with an all-visible mask if one is required."""
    return _plain(candidate, names, torch.zeros((1, 1, 2, 4)[-rank:])) is not None


def _plain(candidate: Candidate, names: Mapping[str, str], q: Tensor) -> Tensor | None:
    """Return the result where q, k and v are all q; None where that is refused."""
    heads = q.shape[1] if q.ndim == 4 else 1
    given: dict[str, Any] = {names["q"]: q, names["k"]: q, names["v"]: q}
    given |= _standing(candidate, names, q.shape[-1], heads=(heads, heads))
    if "mask" in names and candidate.parameters[names["mask"]].default is inspect.Parameter.empty:
        given[names["mask"]] = q.new_ones((*q.shape[:-1], q.shape[-2]))
    try:
        result = first(make_callable(candidate, {"temperature": 2.0, "head_dim": 4}, q.dtype)(**given))
    except Exception:  # refused, for whatever reason
        return None
    return result if isinstance(result, Tensor) else None


def _causality(candidate: Candidate, readings: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the readings of causality by its default behaviour; of several layouts the certain ones."""
    usual = {"mask": MASKS[0], "mask_axes": _AXES[0]} | {name: values[0] for name, values in readings.items()}
    found = {causality_of_function(_bind(candidate, {**usual, "layout": x})) for x in readings["layout"]}
    sure = {values for values in found if len(values) == 1}
    return sure.pop() if len(sure) == 1 else CAUSALITY


def _standing(
    candidate: Candidate,
    names: Mapping[str, str],
    d_k: int,
    readings: Readings | None = None,
    heads: tuple[int, int] = (1, 1),
) -> dict[str, Any]:
    """Return values for omitted options that the code requires: its width, its scale, no causality."""
    defaults = {role: candidate.parameters[name].default for role, name in names.items()}
    found: dict[str, Any] = {names["width"]: d_k} if "width" in names else {}
    left = [role for role in _LEFT_OUT if defaults.get(role) is inspect.Parameter.empty]
    found |= {names[role]: None for role in left}
    found |= {names["heads"]: heads[0]} if "heads" in names else {}
    found |= {names["groups"]: heads[1]} if "groups" in names else {}
    found |= {names["module"]: _layer(heads, d_k)} if "module" in names else {}
    if defaults.get("scale") is inspect.Parameter.empty or (readings or {}).get("scale") == SCALES[1]:
        found[names["scale"]] = _scale(d_k**-0.5, readings or {})
    if "is_causal" in names and defaults["is_causal"] not in (False, None):  # none at all, or causal by itself
        found[names["is_causal"]] = False
    return found


def _layer(heads: tuple[int, int], d_k: int) -> nn.Module:
    """Return a layer without weights that has the attributes of a layer of attention, as functions read them."""
    made = nn.Module().eval()
    sizes = {"num_heads": heads[0], "num_attention_heads": heads[0], "num_key_value_heads": heads[1], "head_dim": d_k}
    vars(made).update(sizes, num_key_value_groups=heads[0] // max(heads[1], 1), is_causal=False)
    return made


def _weightless(candidate: Candidate) -> bool:
    """Return whether it is a function, or a class whose instances hold no weights."""
    if not candidate.is_class:
        return True
    sizes = {"temperature": 2.0, "head_dim": 4}
    try:
        made = built(candidate, sizes, own_sizes(candidate, sizes)) if candidate.is_network else None
    except UnknownArgument:
        raise
    except Unfit:
        return False
    return isinstance(made, nn.Module) and next(made.parameters(), None) is None


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Any]:
    names = _roles(candidate) or {}
    if readings.get("mask") == UNKNOWN:
        del names["mask"]
    options = [role for role in names if role in _OPTIONS]
    always = readings.get("causal") == ALWAYS

    def function_of(q: Tensor) -> Callable[..., Any]:
        return make_callable(candidate, {"temperature": q.shape[-1] ** 0.5, "head_dim": q.shape[-1]}, q.dtype)

    def call(q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Tensor:
        if always and not given.pop("is_causal"):
            raise NotOffered("is_causal: it is always causal")
        if readings["layout"] in _FLAT:
            standing = _standing(candidate, names, q.shape[-1], readings)
            return _flat(function_of(q), names, readings, {"q": q, "k": k, "v": v}, given, standing)
        theirs: dict[str, Any] = {
            names[role]: _given(x, readings["layout"]) for role, x in (("q", q), ("k", k), ("v", v))
        }
        heads = (q.shape[1], k.shape[1])
        if readings["layout"] == JOINED and heads[0] != heads[1] and "groups" not in names:
            raise NotOffered("k, v: it is told one number of heads")
        theirs |= _standing(candidate, names, q.shape[-1], readings, heads)
        for role, value in given.items():
            if role == "mask" and value is not None:
                theirs[names[role]] = _mask(value, q, k, readings)
            elif value is not None and value is not False:
                theirs[names[role]] = _scale(value, readings) if role == "scale" else value
        result: Tensor = first(function_of(q)(**theirs))
        layout = readings.get("result", readings["layout"])
        if layout == JOINED:
            return result.reshape(*result.shape[:-1], heads[0], -1).transpose(1, 2)
        if layout == SWAPPED:
            layout = LAYOUTS[1 - LAYOUTS.index(readings["layout"])]
        return laid_out(result, layout)

    if "window" in options and "is_causal" not in options:
        options.remove("window")
    demanded = "mask" in names and candidate.parameters[names["mask"]].default is inspect.Parameter.empty
    function = as_operation(
        "attention", _unmasked(call) if demanded else call, [*options, *(["is_causal"] if always else [])]
    )
    if always:
        function.refused = {"the default of is_causal": "it is always causal"}  # type: ignore[attr-defined]
    return function


def _scale(scale: float, readings: Readings) -> float:
    if readings.get("scores") != SCALED[1]:
        return scale
    if scale == 0:
        raise NotOffered("scale: scores are divided by what it is told, and no number gives 0")
    return 1 / scale


def _given(x: Tensor, layout: str) -> Tensor:
    return x.transpose(1, 2).flatten(2) if layout == JOINED else laid_out(x, layout)


def _flat(
    function: Callable[..., Any],
    names: Mapping[str, str],
    readings: Readings,
    tensors: Mapping[str, Tensor],
    given: Mapping[str, Any],
    standing: Mapping[str, Any],
) -> Tensor:
    """Return a call of code that knows no heads: for all of them at once, side by side in the batch, or for one at a
    time.
    """
    if any(x.ndim != 4 or x.shape[:2] != tensors["q"].shape[:2] for x in tensors.values()):
        raise NotOffered("q, k, v: the code knows no heads, so that there must be as many keys as queries")
    theirs: dict[str, Any] = {names[role]: x.flatten(0, 1) for role, x in tensors.items()}
    if given.get("mask") is not None:
        theirs[names["mask"]] = _mask(given["mask"], tensors["q"], tensors["k"], readings).flatten(0, 1)
    told = {names[role]: x for role, x in given.items() if role != "mask" and x is not None and x is not False}
    if given.get("scale") is not None:
        told[names["scale"]] = _scale(given["scale"], readings)
    options = {**standing, **told}
    if any(isinstance(x, Tensor) for x in options.values()):
        raise NotOffered("bias: the code knows no heads")
    if _FLAT[readings["layout"]] == 3:
        result: Tensor = first(function(**theirs, **options))
    else:
        each = zip(*theirs.values(), strict=True)
        parts = [first(function(**dict(zip(theirs, one, strict=True)), **options)) for one in each]
        result = torch.stack(parts) if parts else tensors["v"].new_zeros(0, *tensors["v"].shape[2:])
    return result.reshape(*tensors["q"].shape[:2], *result.shape[1:])


def _unmasked(call: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap a call whose mask has no default: None becomes a mask of ones."""

    def with_mask(q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, **given: Any) -> Tensor:
        everything = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device)
        return call(q, k, v, mask=everything if mask is None else mask, **given)

    return with_mask


def _mask(mask: Tensor, q: Tensor, k: Tensor, readings: Readings) -> Tensor:
    """Return their mask: expanded to the axes that they read."""
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


def _settled(function: Callable[..., Tensor]) -> dict[str, str]:
    """Return the mean of all values, where that is what a query gets that sees no key."""
    if "mask" not in inspect.signature(function).parameters:
        return {}
    for dtype in (torch.float32, torch.float64):
        q, k, v = torch.randn(3, 1, 1, 2, 4, dtype=dtype, generator=torch.Generator().manual_seed(3))
        try:
            found = function(q, k, v, mask=torch.tensor([[True, False], [False, False]]))[0, 0, 1]
        except Exception:  # refused, for whatever reason
            return {}
        if not bool(((found - v.mean(-2)[0, 0]).abs() <= 32 * torch.finfo(dtype).eps).all()):  # else it is a finding
            return {}
    return {"attention.empty_row": "uniform"}


FORM = Form(
    name="functions/qkv_attention",
    operation="attention",
    says="(query, key, value, mask=None, …) → the result, or (result, weights)",
    neutral=("mask_axes", "causal", "scores"),
    told_by={"mask": lambda candidate, arguments, readings: hides_some(arguments.get("mask"))},
    match=_match,
    bind=_bind,
    conventions=("causal.alignment",),
    settled=_settled,
)
