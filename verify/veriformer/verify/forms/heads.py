"""Projections and token masks of attention, shared by its forms: the role of each linear map, and masks over tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.conventions import mask_as
from veriformer.verify.forms.form import NotOffered, Unfit
from veriformer.verify.forms.weights import Linear, by_words

_AXES: Mapping[str, tuple[int, int, int]] = {
    "queries, keys, values": (0, 1, 2),
    "head by head": (1, 0, 2),
    "[H,d,3]": (1, 2, 0),
    "[3,d,H]": (0, 2, 1),
    "[d,3,H]": (2, 0, 1),
    "[d,H,3]": (2, 1, 0),
}
"""The order in which an output of one map counts which of the three it is (0), its head (1) and its entry (2)."""

FUSED = tuple(_AXES)
"""Layouts of a fused projection: side by side, for one head after the other, or with the entries further out."""

ONE_FOR_ALL = "[n,n]"
MASK_AXES = ("[B,1,n,n]", "[B,n,n]", "[B,1,1,n]", ONE_FOR_ALL, "[B,n]")

_NAMES: Mapping[str, frozenset[str]] = {
    "q": frozenset(("q", "wq", "query", "queries", "qs", "tq", "qproj", "to_q", "lq")),
    "k": frozenset(("k", "wk", "key", "keys", "ks", "tk", "kproj")),
    "v": frozenset(("v", "wv", "value", "values", "vs", "tv", "vproj")),
    "o": frozenset(
        ("o", "wo", "out", "output", "concat", "dense", "fc", "unify", "final", "combine", "proj", "unifyheads")
    ),
    "qkv": frozenset(("qkv", "c_attn", "wqkv", "in", "toqkv")),
    "kv": frozenset(("kv", "wkv")),
}


@dataclass(frozen=True)
class Projections:
    """The linear maps by role: q, k, v and o, or those of which several come out at once.

    heads: of every head those of its own, where each is a module by itself; maps then has o alone.
    """

    maps: Mapping[str, Linear]
    heads: tuple[Mapping[str, Linear], ...] = ()

    @property
    def fused(self) -> bool:
        """True if queries, keys and values come out of one map."""
        return "qkv" in self.maps

    def tensors(self, w: Mapping[str, Tensor], heads: int, groups: int, order: str) -> dict[str, Tensor]:
        """Return the module's parameters for weights of the contract by q, k, v and o; the last is left out if it has
        none.
        """
        if self.heads:
            found = self._of_each_head(w, heads, groups)
        elif self.fused:
            whole = join_weights([w["q"], w["k"], w["v"]], (heads, groups, groups), order)
            found = self.maps["qkv"].tensors(_exact(whole, self.maps["qkv"]))
        else:
            found = self.maps["q"].tensors(_exact(w["q"], self.maps["q"]))
            if "kv" in self.maps:
                whole = join_weights([w["k"], w["v"]], (groups, groups), order)
                found |= self.maps["kv"].tensors(_exact(whole, self.maps["kv"]))
            else:
                for role in ("k", "v"):
                    found |= self.maps[role].tensors(_exact(w[role], self.maps[role]))
        return found | (self.maps["o"].tensors(_exact(w["o"], self.maps["o"])) if "o" in self.maps else {})

    def _of_each_head(self, w: Mapping[str, Tensor], heads: int, groups: int) -> dict[str, Tensor]:
        """Return the parameters of heads that are modules by themselves."""
        if (heads, groups) != (len(self.heads), heads):
            raise NotOffered(f"num_heads, num_kv_heads: the module has {len(self.heads)} of each")
        found: dict[str, Tensor] = {}
        for role in ("q", "k", "v"):
            own = w[role].chunk(heads, 1)
            for maps, weight in zip(self.heads, own, strict=True):
                found |= maps[role].tensors(_exact(weight, maps[role]))
        return found


def split_heads(w: Mapping[str, Tensor], heads: int, groups: int) -> list[dict[str, Tensor]]:
    """Return the separate weights q, k and v of each head; ``heads // groups`` heads share a key and a value."""
    q, k, v = w["q"].chunk(heads, 1), w["k"].chunk(groups, 1), w["v"].chunk(groups, 1)
    return [{"q": q[h], "k": k[h * groups // heads], "v": v[h * groups // heads]} for h in range(heads)]


def join_weights(weights: list[Tensor], heads: tuple[int, ...], order: str) -> Tensor:
    """Join weights, ``[n_in, n_out]`` each, in one of the orders of ``FUSED``."""
    if order == FUSED[0]:
        return torch.cat(weights, 1)
    if len(set(heads)) > 1:
        raise NotOffered("num_kv_heads: one map gives as many keys as queries")
    split = torch.stack([w.reshape(w.shape[0], heads[0], -1) for w in weights], 1)
    return split.permute(0, *(1 + axis for axis in _AXES[order])).flatten(1)


def _exact(weight: Tensor, part: Linear) -> Tensor:
    if tuple(weight.shape) != (part.n_in, part.n_out):
        raise NotOffered(f"{part.name}: the module has {part.n_in} × {part.n_out}, got {tuple(weight.shape)}")
    return weight


def projections(parts: list[Linear]) -> Projections:
    """Assign roles to projections by name, else by order. Raises Unfit where there are too few or too many."""
    count = len(parts)
    for fused, out in (parts, parts[::-1]) if count == 2 else ():
        if fused.n_out == 3 * fused.n_in == 3 * out.n_in:
            return Projections({"qkv": fused, "o": out})
    if count > 4 and count % 3 == 1 and (each := _by_head(parts[:-1])):
        return Projections({"o": parts[-1]}, each)
    if count not in (2, 3, 4):
        raise Unfit(f"it has {count} linear maps, and attention with projections has 2 to 4")
    named = by_words(parts, _NAMES)
    own = {role: part for role, part in named.items() if list(named.values()).count(part) == 1}
    if count == 2 and parts[0].n_out > parts[1].n_in:
        return Projections({"qkv": parts[0], "o": parts[1]})
    if count == 4:
        roles = ("q", "k", "v", "o")
        if own.keys() >= {"q", "k", "v"}:
            last = next(part for part in parts if part not in (own["q"], own["k"], own["v"]))
            return Projections({"q": own["q"], "k": own["k"], "v": own["v"], "o": last})
        return Projections(dict(zip(roles, parts, strict=True)))
    if count == 3 and "kv" in own:
        rest = [part for part in parts if part is not own["kv"]]
        query = own.get("q", rest[0])
        return Projections({"q": query, "kv": own["kv"], "o": next(part for part in rest if part is not query)})
    if count == 3:
        if own.keys() >= {"q", "k", "v"}:
            return Projections({role: own[role] for role in ("q", "k", "v")})
        return Projections(dict(zip(("q", "k", "v"), parts, strict=True)))
    raise Unfit("its linear maps are not those of attention with projections")


def _by_head(parts: list[Linear]) -> tuple[Mapping[str, Linear], ...]:
    """Return the three maps of every head, if as many are named queries, keys and values; nothing otherwise."""
    of = {role: [part for part in parts if part.words & _NAMES[role]] for role in ("q", "k", "v")}
    counts = {len(members) for members in of.values()}
    shapes = {(part.n_in, part.n_out) for part in parts}
    if counts != {len(parts) // 3} or len(shapes) != 1:
        return ()
    return tuple(dict(zip(of, maps, strict=True)) for maps in zip(*of.values(), strict=True))


def token_mask(seen: Tensor, kind: str, axes: str, dtype: torch.dtype, *, padded: bool) -> Tensor:
    """Return the mask of visible keys, bool ``[B, n_q, n_k]``, as a module takes it. padded: whether some of it is
    padding.

    Raises NotOffered where its mask cannot say this: one for all texts says nothing of the padding of any.
    """
    if axes in ("[B,1,1,n]", "[B,n]"):
        if not bool((seen == seen[:, :1]).all()):
            raise NotOffered("is_causal: the module's mask is one for all queries")
        keys = seen[:, 0]
        return mask_as(keys if axes == "[B,n]" else keys[:, None, None], kind, dtype)
    if axes == ONE_FOR_ALL:
        if padded or not bool((seen == seen[:1]).all()):
            raise NotOffered("attention_mask: the module's mask is one for the whole batch")
        return mask_as(seen[0], kind, dtype)
    return mask_as(seen if axes == "[B,n,n]" else seen[:, None], kind, dtype)


def visible(b: int, n_q: int, n_k: int, given: Mapping[str, Any]) -> Tensor | None:
    """Return the mask of visible keys by causality and mask, bool ``[B, n_q, n_k]``; None where every query sees
    all."""
    mask = given.get("attention_mask")
    if mask is None and not given.get("is_causal"):
        return None
    seen = torch.ones(b, n_q, n_k, dtype=torch.bool)
    if mask is not None:
        seen &= mask.to(torch.bool)[:, None, :]
    return seen.tril(n_k - n_q) if given.get("is_causal") else seen
