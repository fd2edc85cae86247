"""The arguments of a call of a layer of attention, or of a block, by its own names: tokens, masks and tables."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.attention_calls import ALWAYS, UNMASKED
from veriformer.verify.forms.cached_calls import OF_CONTEXT, STARTS, Part
from veriformer.verify.forms.conventions import mask_as
from veriformer.verify.forms.form import NotOffered, Readings
from veriformer.verify.forms.heads import token_mask, visible
from veriformer.verify.forms.rotation import ROWS

PAIRS = "[n,d/2,2]"
TABLES = ("[n,d/2]", "[n,d]", "[1,n,d]", "[B,n,d]", PAIRS)
"""Tables of rotary embeddings that a layer is given: those that turn all by one angle leave attention as it is."""

BATCH = ("[B,n,d]", "[n,B,d]")
UNTURNED = ("all turned by one angle: its rotary embedding is judged apart",)


def arguments_of(
    x: Tensor,
    options: Mapping[str, Any],
    names: Mapping[str, str],
    readings: Readings,
    parameters: Mapping[str, inspect.Parameter],
    heads: int,
    head_dim: int,
    *,
    part: Part | None = None,
    angle: int = 1,
) -> dict[str, Any]:
    """Return the arguments of a call, by the names of the layer. part: of the queries, where they come in pieces."""
    context = options.get("context")
    source = x if context is None else context
    part = part or Part(0, x.shape[1], source.shape[1])
    asked = dict(options)
    bare = readings["causal"] == UNMASKED and part.whole and bool(options.get("is_causal"))
    if bare and options.get("attention_mask") is None:
        asked["is_causal"] = False
    if "flag" in readings:  # it is built so
        asked["is_causal"] = False
    elif readings["causal"] == ALWAYS:
        if not options.get("is_causal"):
            raise NotOffered("is_causal: the module is always causal")
        asked["is_causal"] = False
    own = x[:, part.queries].contiguous()
    keys = own if context is None and readings.get("cached") not in OF_CONTEXT else source
    theirs: dict[str, Any] = _turn_alike(names, readings, own, head_dim, angle)
    if "start" in names and part.whole and _is_required(names["start"], parameters):
        theirs[names["start"]] = 0
    if "places" in names:
        row = torch.arange(part.first, part.stop)
        theirs[names["places"]] = row if readings.get("rows", ROWS[0]) == ROWS[0] else row.expand(len(x), -1)
    if "is_causal" in names and asked.get("is_causal"):
        theirs |= {names["is_causal"]: True} if not part.first else {}  # one token sees all that are kept
        asked["is_causal"] = False
    theirs |= _name_tokens(own, keys, names, readings, parameters, has_context=context is not None)
    if "padding" in names:
        tokens = asked.pop("attention_mask", None)
        if tokens is not None or _is_required(names["padding"], parameters):
            real = torch.ones(source.shape[:2]) if tokens is None else tokens
            theirs[names["padding"]] = mask_as(real[:, : part.keys].to(torch.bool), readings["mask"], x.dtype)
    seen = visible(x.shape[0], x.shape[1], source.shape[1], asked)
    if "mask" not in names:
        if seen is not None:
            raise NotOffered("is_causal, attention_mask: the module takes no mask")
        return theirs
    if seen is None and ((readings["causal"] == UNMASKED and not bare) or _is_required(names["mask"], parameters)):
        seen = torch.ones(x.shape[0], x.shape[1], source.shape[1], dtype=torch.bool)
    if seen is not None:
        padded, seen = asked.get("attention_mask") is not None, part.crop_mask(seen)
        theirs[names["mask"]] = token_mask(seen, readings["mask"], readings["mask_axes"], x.dtype, padded=padded)
    return theirs


def _name_tokens(
    own: Tensor,
    keys: Tensor,
    names: Mapping[str, str],
    readings: Readings,
    parameters: Mapping[str, inspect.Parameter],
    *,
    has_context: bool,
) -> dict[str, Tensor]:
    """Return what queries, keys and values are made from, in the layer's order of axes."""
    own, keys = (x if readings["batch"] == BATCH[0] else x.transpose(0, 1) for x in (own, keys))
    if "q" in names:
        return {names["q"]: own, names["k"]: keys, names["v"]: keys}
    if "context" not in names:
        if has_context:
            raise NotOffered("context: the module takes none")
        return {names["x"]: own}
    given = has_context or _is_required(names["context"], parameters)
    return {names["x"]: own, **({names["context"]: keys} if given else {})}


def _is_required(name: str, parameters: Mapping[str, inspect.Parameter]) -> bool:
    return parameters[name].default is inspect.Parameter.empty


def _turn_alike(names: Mapping[str, str], readings: Readings, x: Tensor, head_dim: int, angle: int) -> dict[str, Any]:
    """Return tables of one angle for all positions, and the position 0, where the layer asks for them.

    angle: in quarter turns, which are exact: what turns queries and keys alike leaves their products.
    """
    found: dict[str, Any] = {names["start"]: 0} if "start" in names and readings.get("cached") != STARTS else {}
    found |= {names["length"]: x.shape[1]} if "length" in names else {}
    if "tables" not in readings:
        return found
    if head_dim % 2:
        raise NotOffered("num_heads: its rotary embedding turns pairs, and this head has an entry more")
    width = head_dim // 2 if readings["tables"] == "[n,d/2]" or "cis" in names else head_dim
    shape = {"[1,n,d]": (1,), "[B,n,d]": (x.shape[0],)}.get(readings["tables"], ())
    ones = torch.ones(*shape, x.shape[1], width, dtype=x.dtype)
    cos, sin = (ones * 0, ones) if angle else (ones, ones * 0)
    if "pairs" in names or readings["tables"] == PAIRS:  # the cosine and the sine of each pair beside each other
        half = [table[..., : head_dim // 2] for table in (cos, sin)]
        return {**found, names["pairs" if "pairs" in names else "cis"]: torch.stack(half, -1)}
    if "cis" in names:
        return {**found, names["cis"]: torch.complex(cos, sin)}
    if "both" in names:
        return {**found, names["both"]: (cos, sin)}
    return {**found, names["cos"]: cos, names["sin"]: sin}
