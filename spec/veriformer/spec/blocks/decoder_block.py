"""The block of a decoder that reads an encoder: masked attention, cross-attention, network (003, section 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from veriformer.spec import costs
from veriformer.spec.blocks.costs_block import block_flops, block_parameters
from veriformer.spec.blocks.published import ASSUMPTIONS, SYMBOLS, Case, block_sample, normalised, parameters
from veriformer.spec.blocks.transformer_block import Params, attention_sublayer, feed_forward_sublayer
from veriformer.spec.equation import Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.heads.published import Raw, multi_head
from veriformer.spec.heads.weights import flops as heads_flops
from veriformer.spec.heads.weights import weight_count
from veriformer.spec.layers.norm_algebra import over_features
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import delta, index, vector
from veriformer.spec.proofs.provenance import computed


def decoder_block(
    xp: Any,
    x: Any,
    context: Any,
    params: Params,
    cross: Params,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    norm: str = "pre",
    activation: str = "gelu",
    context_mask: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Any:
    """Causal self-attention, attention to context, feed-forward network, each with its norm and its residual.

    x [B, n, d], context [B, n_k, d_c]; cross holds w_q [d, ·], w_k and w_v [d_c, ·], w_o and the norm1 of the middle
    sublayer; context_mask [B, n_k] hides tokens of the context where it is 0.
    """
    heads: dict[str, Any] = {"num_heads": num_heads, "num_kv_heads": num_kv_heads, "norm": norm, "eps": eps}
    h = attention_sublayer(xp, x, params, is_causal=True, **heads)
    h = attention_sublayer(xp, h, cross, context=context, attention_mask=context_mask, **heads)
    return feed_forward_sublayer(xp, h, params, norm=norm, activation=activation, eps=eps)


class _Decoder(Case):
    """Decoder case: a token that looks at two of an encoder."""

    def __init__(self, d: int) -> None:
        super().__init__(1, d, 1)
        self.context = self.xp.symbols("c", 1, 2, d)
        self.cross = {name: self.xp.symbols(f"cross_{name}", *p.shape) for name, p in self.params.items()}

    def printed(self) -> Raw:
        """The three lines of the document, one after the other."""
        x = self.x.value[0]
        x = x + self.attended(self.norm(1, x))
        weight, bias = (self.cross[f"norm1_{kind}"].value for kind in ("weight", "bias"))
        h = normalised(x, weight, bias, self.eps)
        weights = {z: self.cross[f"w_{z}"].value for z in "qkvo"}
        x = x + multi_head(h, self.context.value[0], weights, 1, 1)
        return np.asarray(x + self.thought(self.norm(2, x)))


@step(scope=Scope.ENUMERATED, detail="one token, two tokens of context, width 1")
def _formula() -> Identities:
    """The formula computes the three sublayers in the printed order; the context is not normalised again."""
    # A network of its own features would multiply the size of every expression that the norm before it has.
    case = _Decoder(1)
    y = decoder_block(case.xp, case.x, case.context, case.params, case.cross, activation="relu", **case.options)
    yield from entrywise(case.in_full(y), case.printed())


@step()
def _context_path() -> Identities:
    """The context reaches the result as $K + FK$, with K through cross-attention and F through the network: it has no
    residual path, so an encoder learns only through attention to it.
    """
    f, k_, (i, k) = vector("F"), vector("K"), index("i k")
    yield (
        over_features(lambda j: (delta(i, j) + f[i, j]) * k_[j, k]),
        k_[i, k] + over_features(lambda j: f[i, j] * k_[j, k]),
    )


@step()
def _stream_path() -> Identities:
    """Two sublayers with Jacobians A and C in their branches give $I + A + C + CA$: the identity stays, and by
    induction through the third and any further one.
    """
    a, c, (i, k) = vector("A"), vector("C"), index("i k")
    through = over_features(lambda j: (delta(i, j) + c[i, j]) * (delta(j, k) + a[j, k]))
    yield through, delta(i, k) + a[i, k] + c[i, k] + over_features(lambda j: c[i, j] * a[j, k])


@step()
def _more_weights() -> Identities:
    """Cross-attention adds $4 d^2$ weights and a norm of $2 d$ to a block, for as many key heads as heads and a context
    as wide as the stream: a decoder that reads an encoder has more of both than a block without.
    """
    d, heads = costs.symbol("d"), costs.symbol("H")
    full = {costs.symbol("G"): heads, costs.symbol("d_k"): d / heads, costs.symbol("d_v"): d / heads}
    both, alone = computed(_parameters), block_parameters()
    yield both.then(lambda count: (count - alone).subs(full, simultaneous=True)), 4 * d**2 + 2 * d


@step()
def _more_operations() -> Identities:
    """Cross-attention also adds $4 n d^2 + 4 m d^2$ FLOPs of projections, for n tokens that look at m of the context,
    and $4 n m d$ for scores and values.
    """
    d, heads, n, m = (costs.symbol(name) for name in ("d", "H", "n_q", "n_k"))
    full = {"B": 1, "G": heads, "d_k": d / heads, "d_v": d / heads}
    sizes = {costs.symbol(name): size for name, size in full.items()}
    alone = block_flops().subs(m, n)
    added = computed(_flops).then(lambda count: (count - alone).subs(sizes, simultaneous=True))
    yield added, 4 * n * d**2 + 4 * m * d**2 + 4 * n * m * d


def _flops() -> Any:
    """Return the FLOPs of a block over n_q tokens, and attention with its projections over n_k tokens of context."""
    return block_flops().subs(costs.symbol("n_k"), costs.symbol("n_q")) + heads_flops()


def _parameters() -> Any:
    """Return the parameters of a block, and of the projections and the norm of the middle sublayer."""
    return block_parameters() + weight_count() + 2 * costs.symbol("d")


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    drawn = block_sample(rng)
    d, heads, groups = drawn["x"].shape[-1], drawn["num_heads"], drawn["num_kv_heads"]
    return {**drawn, "context": rng.normal(size=(2, 3, d)), "cross": parameters(rng, d, heads, groups, 3)}


EQUATIONS = (
    Equation(
        slug="decoder-block",
        number=None,
        title="The block of a decoder that reads an encoder",
        statement=r"\mathbf{h} = \mathbf{x} + \text{Masked}(\text{LN}(\mathbf{x})), \quad \mathbf{h}' = \mathbf{h} + "
        r"\text{Cross}(\text{LN}(\mathbf{h}), C), \quad \mathbf{y} = \mathbf{h}' + \text{FFN}(\text{LN}(\mathbf{h}'))",
        sources=(Source("003", "3, Complete Transformer Architecture", 135),),
        symbols=(*SYMBOLS[:1], Symbol("C", r"\mathbb{R}^{n_k \times d_c}", "what the encoder gave"), SYMBOLS[-1]),
        assumptions=ASSUMPTIONS,
        sample=_sample,
        formula=decoder_block,
        steps=(_formula, _stream_path, _context_path, _more_weights, _more_operations),
        costs={"FLOPs": _flops, "parameters": _parameters},
    ),
)
