"""The block of any size: its parameters as letters, and its parts as they are printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from veriformer.spec.blocks.transformer_block import attention_sublayer
from veriformer.spec.heads.any_heads import printed_head
from veriformer.spec.layers.activations import PRINTED
from veriformer.spec.layers.layer_norm import layer_norm
from veriformer.spec.layers.norm_algebra import x_hat
from veriformer.spec.proofs.any_length import AnyLength, abbreviated, entry, place
from veriformer.spec.proofs.indexed import dimension, index, positive, sum_over, vector
from veriformer.spec.proofs.provenance import Computed, computed

Row = Callable[[Any], Any]

_LETTERS = {"norm1_weight": "gamma_1", "norm1_bias": "beta_1", "norm2_weight": "gamma_2", "norm2_bias": "beta_2"}


class AnyBlock:
    """A pre-norm block of H heads on B texts of n tokens; what is compared is feature a of row i of text b."""

    def __init__(self) -> None:
        self.xp, self.eps = AnyLength(), positive("epsilon")
        names = ("B", "n", "d", "f", "H", "d_k", "d_v")
        self.texts, self.n, self.d, self.wide, self.heads, self.d_k, self.d_v = map(dimension, names)
        self.b, self.i, self.a = index("b i a")
        keys, values = (self.d, self.heads * self.d_k), (self.d, self.heads * self.d_v)
        shapes: dict[str, tuple[Any, ...]] = {"w_q": keys, "w_k": keys, "w_v": values}
        shapes |= {"w_o": (self.heads * self.d_v, self.d), "w1": (self.d, self.wide), "b1": (self.wide,)}
        shapes |= {"w2": (self.wide, self.d), "b2": (self.d,)}
        shapes |= {f"norm{k}_{kind}": (self.d,) for k in (1, 2) for kind in ("weight", "bias")}
        self.params = {name: self.xp.array(_LETTERS.get(name, name), *shape) for name, shape in shapes.items()}
        self.x = self.xp.array("x", self.texts, self.n, self.d)

    def computed(self, part: Callable[..., Any]) -> Computed:
        """The sublayer or the block at letters."""
        heads = {} if part.__name__ == "feed_forward_sublayer" else {"num_heads": self.heads}
        whole = computed(part, self.xp, self.x, self.params, eps=self.eps, **heads)
        return whole.then(entry(self.b, self.i, self.a))

    def normalised(self, k: int, x: Row) -> Row:
        """LayerNorm of a row as printed, with the weights of norm k."""
        weight, bias = vector(_LETTERS[f"norm{k}_weight"]), vector(_LETTERS[f"norm{k}_bias"])
        return lambda a: weight[a] * x_hat(a, x, self.eps) + bias[a]

    def network(self, h: Row) -> Any:
        """FFN(h) as printed (36)."""
        w1, b1, w2, b2 = map(vector, ("w1", "b1", "w2", "b2"))

        def hidden(c: Any) -> Any:
            return PRINTED["gelu"](sum_over(self.d, lambda k: h(k) * w1[k, c]) + b1[c])

        return sum_over(self.wide, lambda c: hidden(c) * w2[c, self.a]) + b2[self.a]

    def attended(self, h: Callable[[Any, Any], Any]) -> Any:
        """MultiHeadAttn(h, h, h) as printed (27)."""
        sizes = (self.d, self.d, self.n, self.d_k, self.d_v)

        def part(k: Any, e: Any) -> Any:
            return printed_head(h, h, k, k, self.i, e, sizes, "w_") * vector("w_o")[place(k, e, self.d_v), self.a]

        return sum_over(self.heads, lambda k: sum_over(self.d_v, lambda e: part(k, e)))

    def first_norm(self) -> Computed:
        """LayerNorm of the stream as the formula computes it, an array."""
        weights = self.params["norm1_weight"], self.params["norm1_bias"]
        return computed(layer_norm, self.xp, self.x, *weights, eps=self.eps)

    def with_letters_for_the_norm(self, e: Any) -> Any:
        """The expression with letters h[b, j, a] for what the first norm computes."""
        h = vector("h")
        return abbreviated(e, self.first_norm().value, (self.b,), lambda *at: h[at])

    def with_letters_after_attention(self, e: Any) -> Any:
        """The expression with letters h[b, i, a] for the stream after the attention sublayer."""
        # A block of its own, so that its largest score has the name that it has wherever it is the first.
        other, h, x = AnyBlock(), vector("h"), vector("x")
        after = attention_sublayer(other.xp, other.x, other.params, num_heads=self.heads, eps=self.eps)
        return abbreviated(e, after - other.x, (self.b, self.i), lambda *at: h[at] - x[at])
