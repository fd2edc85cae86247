"""A cache as ``update(positions, k, v)`` that gives its whole buffer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.construction import built
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.offering import offered
from veriformer.verify.forms.signatures import roles

_UPDATE = {
    "positions": ("input_pos", "pos", "positions", "cache_position", "position", "start_pos"),
    "k": ("k_val", "k", "k_new", "keys", "key", "xk", "key_states", "k_in"),
    "v": ("v_val", "v", "v_new", "values", "value", "xv", "value_states", "v_in"),
}
_DTYPES = ("dtype", "cache_dtype", "torch_dtype")
LAYOUTS = ("[B,H,n,d]", "[B,n,H,d]")
POSITIONS = ("each", "the first")
"""Whether an update is told the position of each token, or of the first one."""


def _roles(candidate: Candidate) -> dict[str, str] | None:
    return roles(candidate.parameters_of("update"), _UPDATE)


def _match(candidate: Candidate) -> Match | None:
    if not candidate.is_class or not {"cache"} & set(candidate.words):
        return None
    return None if _roles(candidate) is None else Match(True, {"layout": LAYOUTS, "positions": POSITIONS})


@dataclass
class _Cache:
    """One of theirs, and how many tokens it was given."""

    candidate: Candidate
    readings: Readings
    made: Any
    room: int
    length: int = 0

    def update(self, k_new: Tensor, v_new: Tensor) -> tuple[Tensor, Tensor]:
        """Append, and give what is held of the buffer that comes back."""
        names, n = _roles(self.candidate) or {}, k_new.shape[2]
        at: Any = torch.arange(self.length, self.length + n)
        at = at if self.readings["positions"] == POSITIONS[0] else self.length
        given = {names["positions"]: at, names["k"]: self._turned(k_new), names["v"]: self._turned(v_new)}
        whole = self.made.update(**given)
        self.length += n
        k, v = (self._turned(x)[:, :, : self.length].clone() for x in whole)
        return k, v

    def _turned(self, x: Tensor) -> Tensor:
        return x if self.readings["layout"] == LAYOUTS[0] else x.transpose(1, 2)

    def reorder(self, index: Tensor) -> None:
        """Nothing of theirs."""
        raise NotOffered("reorder: the cache has none")

    def reset(self) -> None:
        """Nothing of theirs."""
        raise NotOffered("reset: the cache has none")


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Any]:
    def call(batch: int, num_kv_heads: int, max_length: int, head_dim: int, dtype: torch.dtype) -> _Cache:
        sizes = {"batch": batch, "heads": num_kv_heads, "kv_heads": num_kv_heads, "length": max_length}
        given = {name: dtype for name in _DTYPES if name in candidate.constructor}
        made = built(candidate, {**sizes, "head_dim": head_dim}, given)
        if isinstance(made, nn.Module):
            made = made.to(dtype)
        return _Cache(candidate, readings, made, max_length)

    return offered("kv_cache", call)


FORM = Form(
    name="caches/positions",
    operation="kv_cache",
    says="update(positions, k, v), which gives the whole buffer",
    neutral=("positions",),
    match=_match,
    bind=_bind,
)
