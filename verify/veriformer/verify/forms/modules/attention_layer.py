"""Attention with projections as a module: separate or joined, of one input or three, causal by itself or by a mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.attention_calls import (
    has_tables,
    mask_told,
    roles_of_call,
    takes_token_mask,
    without_unknown,
)
from veriformer.verify.forms.cached_calls import Part
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.causality import CAUSALITY
from veriformer.verify.forms.construction import built, score_scaling, takes_size
from veriformer.verify.forms.conventions import MASKS
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings, Unfit
from veriformer.verify.forms.heads import FUSED, Projections, projections, split_heads
from veriformer.verify.forms.holding import Holder, call_with_weights, first
from veriformer.verify.forms.layer_arguments import BATCH, TABLES, UNTURNED, arguments_of
from veriformer.verify.forms.layer_caches import Pieces, find_cached_way
from veriformer.verify.forms.layer_causality import find_causal_flag, tenable_causality
from veriformer.verify.forms.layer_sizes import HEADS, WIDTH, batch_for, length_for, own_flags, sizes_of
from veriformer.verify.forms.mask_axes import tenable_axes
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.own_tables import settle_turning, turn_alike
from veriformer.verify.forms.rotation import ROWS
from veriformer.verify.forms.stated_shapes import stated_layout
from veriformer.verify.forms.weights import HELD, is_held_alone, linears

_WHOLES = {"lm", "gpt", "model", "classifier"}
"""Words of what has heads of another kind."""

_WORDS = {"attention", "attn", "mha", "msa", "mhsa", "gqa", "mqa", "head", "heads"}
_KINDS = (
    "linear local sparse axial window windowed cosine performer latent differential relative fast additive bahdanau "
    "luong gated channel spatial se pooling sliding swa rotary rope shaw xl alibi"
)
_OTHER_KINDS = frozenset(_KINDS.split())
"""Words of attention that is another one, unless it turns out to be the same."""

HEAD_SIZES = ("the width of a head", "the number of heads")
"""Meaning of a constructor's one size of heads, where it has no other."""

UNPROJECTED = "without a projection"
"""Result of a layer that has no w_o: heads side by side, or one head where it knows no number of heads."""


def _match(candidate: Candidate) -> Match | None:
    if not candidate.is_network or not _WORDS & set(candidate.words):
        return None
    if _WHOLES & set(candidate.words) and not {"attention", "attn"} & set(candidate.words):
        return None
    names = roles_of_call(candidate)
    if names is None:
        return None
    instance = built(candidate, sizes_of(WIDTH, HEADS, HEADS, WIDTH // HEADS, WIDTH), own_flags(candidate))
    if not isinstance(instance, nn.Module) or next(instance.parameters(), None) is None:
        return None
    settled = settle_turning(candidate, instance, names, WIDTH, HEADS)
    parts = linears(instance)
    found = projections(parts)
    batch = stated_layout(candidate, names.get("x", names.get("q", "")), BATCH)
    readings: dict[str, tuple[str, ...]] = {"causal": tenable_causality(candidate, instance, names), "batch": batch}
    if flag := find_causal_flag(candidate, names):
        readings |= {"causal": CAUSALITY[:1], "flag": (flag,)}
    whole = "o" in found.maps or _has_heads(candidate)
    kept = find_cached_way(candidate, instance, names, readings["causal"][0]) if whole else ()
    if settled and kept:  # tables of one angle would hide at which positions it turns what comes after the cache
        raise Unfit(
            "it turns queries and keys by tables of its own behind a cache, at positions that no call would show"
        )
    readings |= {"cached": kept} if kept else {}
    told: tuple[str, ...] = tuple(
        f"built with {name} = True, which its default is not" for name in score_scaling(candidate)
    )
    if has_tables(names):
        readings |= {"batch": BATCH[:1], "tables": TABLES}
        told += UNTURNED
    told += settled
    readings |= {"rows": ROWS} if settled and "places" in names else {}
    if "mask" in names:
        axes = tenable_axes(candidate, instance, names, readings["causal"][0])
        readings |= {"mask": MASKS, "mask_axes": axes}
    if found.fused or "kv" in found.maps:
        readings["joined"] = FUSED
    if not _has_heads(candidate) and takes_size(candidate, "head_dim") and "o" in found.maps:
        readings["head_size"] = HEAD_SIZES
    if any(map(is_held_alone, parts)):
        readings["held"] = HELD
    if "o" not in found.maps:
        readings["result"] = (UNPROJECTED,)
        told += ("it has no projection of its result: w_o is applied to what it gives",)
    return Match(not _OTHER_KINDS & set(candidate.words), readings, told)


def _has_heads(candidate: Candidate) -> bool:
    return takes_size(candidate, "heads")


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    names = without_unknown(roles_of_call(candidate) or {}, readings)
    holder, given = Holder.of(candidate), own_flags(candidate)
    parameters, pieces = candidate.parameters, Pieces(candidate, names, readings)
    grouped = takes_size(candidate, "kv_heads")
    headed = _has_heads(candidate) or "head_size" in readings
    bare = readings.get("result") == UNPROJECTED
    flag = readings.get("flag")
    joined, held = readings.get("joined", FUSED[0]), readings.get("held", HELD[0])

    def call(
        x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, *, num_heads: int, **options: Any
    ) -> Tensor:
        groups = options.get("num_kv_heads") or num_heads
        head_dim = w_q.shape[1] // num_heads
        _check(x, (w_q, w_k, w_v, w_o), num_heads, groups)
        size = num_heads if readings.get("head_size") == HEAD_SIZES[1] else head_dim
        context = options.get("context")
        length, batch = length_for(x, x if context is None else context), batch_for(x)
        weights = {"q": w_q, "k": w_k, "v": w_v, "o": w_o}

        def arguments(part: Part | None = None) -> dict[str, Any]:
            return arguments_of(x, options, names, readings, parameters, num_heads, head_dim, part=part)

        made = given | ({flag: bool(options.get("is_causal"))} if flag else {})
        if bare and not headed:
            alone = sizes_of(x.shape[-1], 1, 1, head_dim, head_dim, length, batch=batch)
            one = turn_alike(holder.module(alone, x.dtype, **made), head_dim)
            maps = projections(linears(one, held))
            each = [maps.tensors(own, 1, 1, joined) for own in split_heads(weights, num_heads, groups)]
            results = torch.cat([first(call_with_weights(one, own, **arguments())) for own in each], -1)
            return _batch_first(results, readings) @ w_o
        if (groups != num_heads and not grouped) or (num_heads != 1 and not headed):
            raise NotOffered("num_kv_heads, num_heads: the module has no such number")
        out = w_q.shape[1] if bare else w_o.shape[1]
        sizes = sizes_of(x.shape[-1], num_heads, groups, size, out, length, batch=batch)
        module = turn_alike(holder.module(sizes, x.dtype, **made), head_dim)
        own: Projections = projections(linears(module, held))
        if not bare and "o" not in own.maps:  # some leave it out for one head, where another weight would be ignored
            raise NotOffered("w_o: the module of these sizes has no projection of the result")
        tensors = own.tensors(weights, num_heads, groups, joined)
        result: Tensor = first(call_with_weights(module, tensors, **arguments()))
        result = pieces.interleave(result, (module, tensors), arguments, x, options, sizes)
        return _batch_first(result, readings) @ w_o if bare else _batch_first(result, readings)

    offers = ["is_causal", *(["num_kv_heads"] if grouped or (bare and not headed) else [])]
    offers += ["attention_mask"] if takes_token_mask(names) else []
    offers += ["context"] if "q" in names or "context" in names else []
    return as_operation("multi_head_attention", call, offers)


def _batch_first(result: Tensor, readings: Readings) -> Tensor:
    return result if readings["batch"] == BATCH[0] else result.transpose(0, 1)


def _check(x: Tensor, weights: tuple[Tensor, ...], heads: int, groups: int) -> None:
    if x.ndim != 3 or any(w.ndim != 2 for w in weights):
        raise NotOffered("x, w_q, w_k, w_v, w_o: expected rank 3, and weights of rank 2")
    if heads < 1 or groups < 1 or heads % groups or weights[0].shape[1] % heads:
        raise NotOffered("num_heads, num_kv_heads: widths that are no multiples")


FORM = Form(
    name="modules/attention_layer",
    operation="multi_head_attention",
    says="a module with projections, built from width and heads: attention(x), or attention(q, k, v, mask)",
    neutral=("causal", "cached", "joined", "mask_axes", "tables", "held", "head_size", "result", "rows", "flag"),
    told_by={"mask": mask_told},
    match=_match,
    bind=_bind,
)
