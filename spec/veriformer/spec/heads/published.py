"""Heads read as they are printed, one by one with weights of their own: what the proofs hold the formula against."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic

Raw = NDArray[Any]


def head(x: Raw, c: Raw, w_q: Raw, w_k: Raw, w_v: Raw) -> Raw:
    """Attention(x W_q, c W_k, c W_v) for x [n_q, d] and c [n_k, d_c], without a mask (26)."""
    q, k, v = x @ w_q, c @ w_k, c @ w_v
    e = np.frompyfunc(sp.exp, 1, 1)(q @ k.T / sp.sqrt(q.shape[-1]))
    return np.asarray((e / e.sum(axis=-1, keepdims=True)) @ v)


def columns(w: Raw, h: int, heads: int) -> Raw:
    """The columns of head h."""
    return np.asarray(np.split(w, heads, axis=1)[h])


def multi_head(x: Raw, c: Raw, w: dict[str, Raw], heads: int, groups: int) -> Raw:
    """Concat(head_1, …, head_H) W_O (27), where group g of the keys serves H / G heads."""
    share = heads // groups
    own = ((columns(w["q"], h, heads), *(columns(w[z], h // share, groups) for z in "kv")) for h in range(heads))
    return np.asarray(np.concatenate([head(x, c, *three) for three in own], axis=1) @ w["o"])


class Case:
    """Symbolic text and the weights of every projection, of the given sizes."""

    def __init__(
        self, heads: int, groups: int, *, n: int = 2, d: int = 1, d_k: int = 1, d_v: int = 1, context: int = 0
    ) -> None:
        self.xp = TowerArithmetic()
        self.heads, self.groups = heads, groups
        self.x = self.xp.symbols("x", 1, n, d)
        self.context = self.xp.symbols("c", 1, context, d) if context else None
        shapes = {"q": (d, heads * d_k), "k": (d, groups * d_k), "v": (d, groups * d_v), "o": (heads * d_v, 1)}
        self.weights = [self.xp.symbols(f"W{name}", *shape) for name, shape in shapes.items()]

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments of the formula."""
        return {"num_heads": self.heads, "num_kv_heads": self.groups, "context": self.context}

    def as_printed(self) -> Raw:
        """The statement for this case."""
        c = self.x if self.context is None else self.context
        weights = dict(zip("qkvo", (w.value for w in self.weights), strict=True))
        return multi_head(self.x.value[0], c.value[0], weights, self.heads, self.groups)

    def in_full(self, y: Any) -> list[Any]:
        """Entries with exponentials written out."""
        return [self.xp.in_full(e) for e in y.value.ravel()]
