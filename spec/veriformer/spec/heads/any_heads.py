"""Multi-head attention of any size: the formula at letters, and heads as they are printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from veriformer.spec.attention.printed_attention import Entry, attended
from veriformer.spec.heads.multi_head_attention import multi_head_attention
from veriformer.spec.proofs.any_length import AnyLength, place
from veriformer.spec.proofs.indexed import dimension, sum_over, vector
from veriformer.spec.proofs.provenance import Computed, computed


class AnyHeads:
    """B texts of n tokens with d features, over contexts of m tokens with f features; r heads for each of G key heads.

    Head (g, s) is the s-th of those that read key head g.
    """

    def __init__(self) -> None:
        names = ("B", "n", "m", "d", "f", "G", "r", "d_k", "d_v")
        self.texts, self.n, self.m, self.d, self.f, self.groups, self.r, self.d_k, self.d_v = map(dimension, names)
        self.heads = self.groups * self.r

    def computed(self, w_o: Callable[[AnyLength], Any]) -> Computed:
        """The formula with this output projection, and letters for all else."""
        xp = AnyLength()
        x, context = xp.array("X", self.texts, self.n, self.d), xp.array("C", self.texts, self.m, self.f)
        shapes = (self.d, self.heads * self.d_k), (self.f, self.groups * self.d_k), (self.f, self.groups * self.d_v)
        weights = [xp.array(name, *shape) for name, shape in zip(("W_q", "W_k", "W_v"), shapes, strict=True)]
        options = {"num_heads": self.heads, "num_kv_heads": self.groups, "context": context}
        return computed(multi_head_attention, xp, x, *weights, w_o(xp), **options)

    def head(self, b: Any, g: Any, s: Any, i: Any, e: Any) -> Any:
        """Feature e of row i of head (g, s): attention with the columns of the weights that are its own."""
        x, c = (lambda t, a: vector("X")[b, t, a]), (lambda t, a: vector("C")[b, t, a])
        return printed_head(x, c, place(g, s, self.r), g, i, e, (self.d, self.f, self.m, self.d_k, self.d_v))

    def multi_head(self, b: Any, i: Any, a: Any) -> Any:
        """Feature a of row i: all heads side by side, times W_o."""

        def part(g: Any, s: Any, e: Any) -> Any:
            return self.head(b, g, s, i, e) * vector("W_o")[place(place(g, s, self.r), e, self.d_v), a]

        def of_group(g: Any) -> Any:
            return sum_over(self.r, lambda s: sum_over(self.d_v, lambda e: part(g, s, e)))

        return sum_over(self.groups, of_group)


def printed_head(x: Entry, c: Entry, h: Any, g: Any, i: Any, e: Any, sizes: tuple[Any, ...], name: str = "W_") -> Any:
    """Feature e of row i of Attention(X W_q^h, C W_k^g, C W_v^g); sizes: those of d, f, m, d_k and d_v."""
    d, f, m, d_k, d_v = sizes
    w_q, w_k, w_v = (vector(name + letter) for letter in "qkv")
    return attended(
        lambda a: sum_over(d, lambda k: x(i, k) * w_q[k, place(h, a, d_k)]),
        lambda j, a: sum_over(f, lambda k: c(j, k) * w_k[k, place(g, a, d_k)]),
        lambda j: sum_over(f, lambda k: c(j, k) * w_v[k, place(g, e, d_v)]),
        m,
        d_k,
    )
