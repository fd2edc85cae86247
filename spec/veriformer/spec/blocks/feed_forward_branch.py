"""The second half of the block: normalise, apply the network, add (equations 34 and 35)."""

from __future__ import annotations

from typing import Any

from veriformer.spec import costs
from veriformer.spec.blocks.any_block import AnyBlock
from veriformer.spec.blocks.costs_block import COSTS
from veriformer.spec.blocks.published import ASSUMPTIONS, SYMBOLS, Case, block_sample
from veriformer.spec.blocks.transformer_block import feed_forward_sublayer, transformer_block, transformer_block_vjp
from veriformer.spec.equation import Equation, Identities, Scope, Source, step
from veriformer.spec.layers.norm_algebra import over_features
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import delta, index, real, vector


def _block(case: Case, **params: Any) -> Any:
    return transformer_block(case.xp, case.x, case.params | params, activation="relu", **case.options)


@step(scope=Scope.ENUMERATED, detail="2 tokens of 2 features")
def _by_tokens() -> Identities:
    """Norm and network work token by token: what they make of one token does not change with another. Only attention
    carries anything between tokens.
    """
    # Two tokens in a block whose attention adds nothing, against each token alone.
    case = Case(2, 2, 1).without("w_o")
    for row, alone in zip(_block(case).value[0], case.x.value[0], strict=True):
        token = alone[None]
        yield from entrywise(row, token + case.thought(case.norm(2, token)))


@step()
def _two_branches() -> Identities:
    """With $A$ and $B$ for the two branches and their norms, the block's Jacobian is $(I + B)(I + A) = I + A + B + BA$:
    past both, through one, or through both.
    """
    a, b, (i, k) = vector("A"), vector("B"), index("i k")
    block = over_features(lambda j: (delta(i, j) + b[i, j]) * (delta(j, k) + a[j, k]))
    yield block, delta(i, k) + a[i, k] + b[i, k] + over_features(lambda j: b[i, j] * a[j, k])


@step(scope=Scope.ENUMERATED, detail="the network's branch, one token of 2 features")
def _skipped_branch() -> Identities:
    r"""A branch is linear in its last weights: scaled by t, they add t times as much. So a branch whose last weights
    are zero is skipped, and a block whose $W^O$, $W_2$ and $\mathbf{b}_2$ are zero is the identity.
    """
    # The network's last weights times t: its part is t times what it was, and nothing at t = 0.
    case, t = Case(1, 2, 1).without("w_o"), real("t")
    h_2 = case.x.value[0]
    weak = _block(case, w2=case.params["w2"] * t, b2=case.params["b2"] * t)
    yield from entrywise(weak, h_2 + t * case.thought(case.norm(2, h_2)))


@step()
def _any_length() -> Identities:
    r"""The block is $\mathbf{h}_2 + \text{FFN}(\mathbf{h}_3)$ with $\mathbf{h}_3 = \text{LayerNorm}(\mathbf{h}_2)$,
    where letters h stand for what its first half computes (33), for all sizes and any number of heads. So is its second
    half alone, of any stream x.
    """
    block = AnyBlock()

    def printed(stream: Any) -> Any:
        def h_2(k: Any) -> Any:
            return stream[block.b, block.i, k]

        return h_2(block.a) + block.network(block.normalised(2, h_2))

    yield block.computed(transformer_block).then(block.with_letters_after_attention), printed(vector("h"))
    yield block.computed(feed_forward_sublayer), printed(vector("x"))


EQUATIONS = (
    Equation(
        slug="block-second-norm",
        number="34",
        title="The norm before the network",
        statement=r"\mathbf{h}_3 = \text{LayerNorm}(\mathbf{h}_2)",
        sources=(Source("002", "7.1", 902), Source("003", "7, Single Layer Mathematical Flow", 574)),
        symbols=SYMBOLS,
        assumptions=ASSUMPTIONS,
        sample=block_sample,
        formula=transformer_block,
        vjp=transformer_block_vjp,
        steps=(_by_tokens, _any_length),
        costs=costs.lazily("layer_norm"),
    ),
    Equation(
        slug="block-output",
        number="35",
        title="The block's output",
        statement=r"\mathbf{y} = \mathbf{h}_2 + \text{FFN}(\mathbf{h}_3)",
        sources=(Source("002", "7.1", 903), Source("003", "7, Single Layer Mathematical Flow", 576)),
        symbols=SYMBOLS,
        assumptions=ASSUMPTIONS,
        sample=block_sample,
        formula=transformer_block,
        vjp=transformer_block_vjp,
        steps=(_two_branches, _any_length, _skipped_branch),
        costs=COSTS,
    ),
)
