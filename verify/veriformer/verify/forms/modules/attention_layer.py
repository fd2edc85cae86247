"""Attention with projections as a module: separate or joined, of one input or three, causal by itself or by a mask."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
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
from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.causality import CAUSALITY, causality_of
from veriformer.verify.forms.construction import built, scaled, takes_size
from veriformer.verify.forms.conventions import MASKS, mask_as
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings, Unfit
from veriformer.verify.forms.heads import FUSED, MASK_AXES, Projections, projections, token_mask, visible
from veriformer.verify.forms.holding import Holder, called, first
from veriformer.verify.forms.offering import offered
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

TABLES = ("[n,d/2]", "[n,d]", "[1,n,d]", "[B,n,d]")
"""Tables of rotary embeddings that a layer is given: those that turn by no angle leave attention as it is."""

_TURNING = {"rope", "rotary", "freqs", "cos", "sin", "freq"}
"""Words of tables, and of parts, of a rotary embedding that a layer holds itself."""

BATCH = ("[B,n,d]", "[n,B,d]")
HEAD_SIZES = ("the width of a head", "the number of heads")
"""What a constructor's one size of heads is, where it has no other."""

UNTURNED = ("turned by no angle: its rotary embedding is judged apart",)
HEADS, WIDTH = 2, 12


def _match(candidate: Candidate) -> Match | None:
    if not candidate.is_network or not _WORDS & set(candidate.words):
        return None
    if _WHOLES & set(candidate.words) and not {"attention", "attn"} & set(candidate.words):
        return None
    names = roles_of_call(candidate)
    if names is None:
        return None
    instance = built(candidate, sizes_of(WIDTH, HEADS, HEADS, WIDTH // HEADS, WIDTH), _flags(candidate))
    if not isinstance(instance, nn.Module) or next(instance.parameters(), None) is None:
        return None
    refuse_turning(instance, names)
    parts = linears(instance)
    found = projections(parts)
    batch = stated_layout(candidate, names.get("x", names.get("q", "")), BATCH)
    readings: dict[str, tuple[str, ...]] = {"causal": tenable_causality(candidate, instance, names), "batch": batch}
    told: tuple[str, ...] = tuple(f"built with {name} = True, which its default is not" for name in scaled(candidate))
    if has_tables(names):
        readings |= {"batch": BATCH[:1], "tables": TABLES}
        told += UNTURNED
    if "mask" in names:
        readings |= {"mask": MASKS, "mask_axes": MASK_AXES}
    if found.fused or "kv" in found.maps:
        readings["joined"] = FUSED
    if not _has_heads(candidate) and takes_size(candidate, "head_dim"):
        readings["head_size"] = HEAD_SIZES
    if any(map(is_held_alone, parts)):
        readings["held"] = HELD
    if "o" not in found.maps:
        raise Unfit("it has no projection of the result")
    return Match(not _OTHER_KINDS & set(candidate.words), readings, told)


def tenable_causality(candidate: Candidate, instance: nn.Module, names: Mapping[str, str]) -> tuple[str, ...]:
    """The readings of causality that a layer of width ``WIDTH`` may have, by what it does without being asked."""
    readings = {"causal": CAUSALITY[0], "batch": BATCH[0], "mask": MASKS[0], "mask_axes": MASK_AXES[0]}
    readings |= {"tables": TABLES[0]} if has_tables(names) else {}
    instance.eval()

    def layer(x: Tensor) -> Tensor:
        theirs = arguments_of(x, {}, names, readings, candidate.parameters, HEADS, WIDTH // HEADS)
        result: Tensor = first(instance(**theirs))
        return result

    return causality_of(layer, WIDTH)


def refuse_turning(instance: nn.Module, names: Mapping[str, str]) -> None:
    """Raise Unfit for a layer that holds what turns queries and keys, and is given no tables that turn by no angle."""
    held = [*(name for name, _ in instance.named_buffers()), *(type(part).__name__ for part in instance.modules())]
    turning = [name for name in held if _TURNING & set(words(name.rpartition(".")[2]))]
    if turning and not has_tables(names):
        raise Unfit(f"it turns queries and keys by its own {turning[0]!r}, which the contract's attention does not")


def _flags(candidate: Candidate) -> dict[str, Any]:
    """Biases are left out where the constructor leaves the choice: the contract has none."""
    names = ("bias", "use_bias", "qkv_bias", "attention_bias")
    return scaled(candidate) | {name: False for name in candidate.constructor if name in names}


SHORTEST = 160
"""A module is made for so many positions at least: one for all short sequences."""


def length_for(*rows: Tensor) -> int:
    """For how many positions a module must be made that reads these, in steps, so that few are made."""
    longest = max(x.shape[1] for x in rows)
    return SHORTEST if longest <= SHORTEST else 1 << (longest - 1).bit_length()


def sizes_of(
    width: int, heads: int, groups: int | None, head_dim: int, out: int, length: int = SHORTEST
) -> dict[str, Any]:
    """Sizes by their names in constructors."""
    kv = {} if groups is None else {"kv_heads": groups}
    sizes = {
        "width": width,
        "out": out,
        "heads": heads,
        "head_dim": head_dim,
        "length": length,
        "layers": 2,
        "batch": 8,
    }
    return {**sizes, **kv, "vocabulary": 13, "inner": 2 * width}


def _has_heads(candidate: Candidate) -> bool:
    return takes_size(candidate, "heads")


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    names = without_unknown(roles_of_call(candidate) or {}, readings)
    holder, given = Holder.of(candidate), _flags(candidate)
    parameters = candidate.parameters
    grouped = takes_size(candidate, "kv_heads")
    headed = _has_heads(candidate) or "head_size" in readings

    def call(
        x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, *, num_heads: int, **options: Any
    ) -> Tensor:
        groups = options.get("num_kv_heads") or num_heads
        head_dim = w_q.shape[1] // num_heads
        _check(x, (w_q, w_k, w_v, w_o), num_heads, groups)
        if (groups != num_heads and not grouped) or (num_heads != 1 and not headed):
            raise NotOffered("num_kv_heads, num_heads: the module has no such number")
        size = num_heads if readings.get("head_size") == HEAD_SIZES[1] else head_dim
        context = options.get("context")
        length = length_for(x, x if context is None else context)
        sizes = sizes_of(x.shape[-1], num_heads, groups, size, w_o.shape[1], length)
        module = holder.module(sizes, x.dtype, **given)
        own: Projections = projections(linears(module, readings.get("held", HELD[0])))
        weights = {"q": w_q, "k": w_k, "v": w_v, "o": w_o}
        tensors = own.tensors(weights, num_heads, groups, readings.get("joined", FUSED[0]))
        theirs = arguments_of(x, options, names, readings, parameters, num_heads, head_dim)
        result: Tensor = first(called(module, tensors, **theirs))
        return result if readings["batch"] == BATCH[0] else result.transpose(0, 1)

    offers = ["is_causal", *(["num_kv_heads"] if grouped else [])]
    offers += ["attention_mask"] if takes_token_mask(names) else []
    offers += ["context"] if "q" in names or "context" in names else []
    return offered("multi_head_attention", call, offers)


def _unturned(names: Mapping[str, str], readings: Readings, x: Tensor, head_dim: int) -> dict[str, Any]:
    """Tables of angles 0, and the position 0, where the layer asks for them."""
    found: dict[str, Any] = {names["start"]: 0} if "start" in names else {}
    found |= {names["length"]: x.shape[1]} if "length" in names else {}
    if "tables" not in readings:
        return found
    if head_dim % 2:
        raise NotOffered("num_heads: its rotary embedding turns pairs, and this head has an entry more")
    width = head_dim // 2 if readings["tables"] == "[n,d/2]" or "cis" in names else head_dim
    shape = {"[1,n,d]": (1,), "[B,n,d]": (x.shape[0],)}.get(readings["tables"], ())
    ones = torch.ones(*shape, x.shape[1], width, dtype=x.dtype)
    if "pairs" in names:  # the cosine and the sine of each pair beside each other
        half = torch.ones(*shape, x.shape[1], head_dim // 2, dtype=x.dtype)
        return {**found, names["pairs"]: torch.stack((half, torch.zeros_like(half)), -1)}
    if "cis" in names:
        return {**found, names["cis"]: torch.polar(ones, torch.zeros_like(ones))}
    if "both" in names:
        return {**found, names["both"]: (ones, torch.zeros_like(ones))}
    return {**found, names["cos"]: ones, names["sin"]: torch.zeros_like(ones)}


def _check(x: Tensor, weights: tuple[Tensor, ...], heads: int, groups: int) -> None:
    if x.ndim != 3 or any(w.ndim != 2 for w in weights):
        raise NotOffered("x, w_q, w_k, w_v, w_o: expected rank 3, and weights of rank 2")
    if heads < 1 or groups < 1 or heads % groups or weights[0].shape[1] % heads:
        raise NotOffered("num_heads, num_kv_heads: widths that are no multiples")


def arguments_of(
    x: Tensor,
    options: Mapping[str, Any],
    names: Mapping[str, str],
    readings: Readings,
    parameters: Mapping[str, inspect.Parameter],
    heads: int,
    head_dim: int,
) -> dict[str, Any]:
    """Their arguments of a call, by their names."""
    context = options.get("context")
    source = x if context is None else context
    asked = dict(options)
    if readings["causal"] == CAUSALITY[1]:
        if not options.get("is_causal"):
            raise NotOffered("is_causal: the module is always causal")
        asked["is_causal"] = False
    theirs: dict[str, Any] = _unturned(names, readings, x, head_dim)
    if "is_causal" in names and asked.get("is_causal"):
        theirs[names["is_causal"]] = True
        asked["is_causal"] = False

    def turned(t: Tensor) -> Tensor:
        return t if readings["batch"] == BATCH[0] else t.transpose(0, 1)

    if "q" in names:
        theirs |= {names["q"]: turned(x), names["k"]: turned(source), names["v"]: turned(source)}
    else:
        theirs[names["x"]] = turned(x)
        if "context" in names and (
            context is not None or parameters[names["context"]].default is inspect.Parameter.empty
        ):
            theirs[names["context"]] = turned(source)
        elif context is not None:
            raise NotOffered("context: the module takes none")
    if "padding" in names:
        tokens = asked.pop("attention_mask", None)
        if tokens is not None or parameters[names["padding"]].default is inspect.Parameter.empty:
            real = torch.ones(source.shape[:2]) if tokens is None else tokens
            theirs[names["padding"]] = mask_as(real.to(torch.bool), readings["mask"], x.dtype)
    seen = visible(x.shape[0], x.shape[1], source.shape[1], asked)
    if "mask" not in names:
        if seen is not None:
            raise NotOffered("is_causal, attention_mask: the module takes no mask")
        return theirs
    if seen is None and parameters[names["mask"]].default is inspect.Parameter.empty:
        seen = torch.ones(x.shape[0], x.shape[1], source.shape[1], dtype=torch.bool)
    if seen is not None:
        padded = asked.get("attention_mask") is not None
        theirs[names["mask"]] = token_mask(seen, readings["mask"], readings["mask_axes"], x.dtype, padded=padded)
    return theirs


FORM = Form(
    name="modules/attention_layer",
    operation="multi_head_attention",
    says="a module with projections, built from width and heads: attention(x), or attention(q, k, v, mask)",
    neutral=("causal", "joined", "mask_axes", "tables", "held", "head_size"),
    told_by={"mask": mask_told},
    match=_match,
    bind=_bind,
)
