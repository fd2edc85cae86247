"""The first half of the block: normalise, attend, add (equations 32 and 33)."""

from __future__ import annotations

from typing import Any

from veriformer.spec import costs
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.blocks.any_block import AnyBlock
from veriformer.spec.blocks.costs_block import COSTS
from veriformer.spec.blocks.published import ASSUMPTIONS, SYMBOLS, sample
from veriformer.spec.blocks.transformer_block import attention_sublayer
from veriformer.spec.equation import Equation, Identities, Source, step
from veriformer.spec.layers.norm_algebra import jacobian, over_features, pulled_back, x_hat, x_of
from veriformer.spec.proofs.any_length import entry
from veriformer.spec.proofs.indexed import delta, index, positive, real, vector


@step()
def _same_input() -> Identities:
    r"""The branch reads the same whatever the stream's scale and offset: $\hat{\mathbf{x}}(a \mathbf{x} + c; a^2
    \epsilon) = \hat{\mathbf{x}}(\mathbf{x}; \epsilon)$. However large the stream has grown over the blocks, attention
    sees rows of one size.
    """
    i, a, c, eps = index("i"), positive("a"), real("c"), positive("epsilon")
    yield x_hat(i, lambda k: a * x_of(k) + c, a**2 * eps), x_hat(i)


@step()
def _weaker_branch() -> Identities:
    r"""Its Jacobian is divided by that scale, $J(a \mathbf{x}; a^2 \epsilon) = J(\mathbf{x}; \epsilon) / a$: on a
    stream that has grown, a block changes the gradient less, and comes closer to the identity.
    """
    (i, k), a, eps = index("i k"), positive("a"), positive("epsilon")
    yield jacobian(i, k, lambda j: a * x_of(j), a**2 * eps), jacobian(i, k) / a


@step()
def _jacobian() -> Identities:
    """The Jacobian is $I + W J$: the identity, untouched by norm and branch, and a term that goes through both."""
    w, (i, k) = vector("W"), index("i k")
    after = x_of(i) + over_features(lambda j: w[i, j] * x_hat(j))
    yield sp.diff(after, x_of(k)), delta(i, k) + over_features(lambda j: w[i, j] * jacobian(j, k))


@step()
def _pullback() -> Identities:
    r"""So a cotangent comes back as $\mathbf{g}$ itself, plus $\mathbf{g} W$ through the norm's own vector-Jacobian
    product (19).
    """
    # g pulled back through the branch W, then through the norm, and added to what came past both.
    g, w, k = vector("g"), vector("W"), index("k")

    def h(j: Any) -> Any:
        return over_features(lambda i: g[i] * w[i, j])

    yield g[k] + over_features(lambda j: h(j) * jacobian(j, k)), g[k] + pulled_back(k, h)


@step()
def _any_length() -> Identities:
    r"""The formula computes $\mathbf{x} + \text{MultiHeadAttn}(\mathbf{h}_1, \mathbf{h}_1, \mathbf{h}_1)$ with letters
    h for the norm's result on x, and that is LayerNorm(x), for all sizes and any number of heads.
    """
    block, x = AnyBlock(), vector("x")
    b, i, a = block.b, block.i, block.a
    first = block.computed(attention_sublayer).then(block.with_letters_for_the_norm)
    yield first, x[b, i, a] + block.attended(lambda t, k: vector("h")[b, t, k])
    yield block.first_norm().then(entry(b, i, a)), block.normalised(1, lambda k: x[b, i, k])(a)


EQUATIONS = (
    Equation(
        slug="block-first-norm",
        number="32",
        title="The norm before attention",
        statement=r"\mathbf{h}_1 = \text{LayerNorm}(\mathbf{x})",
        sources=(Source("002", "7.1", 900), Source("003", "7, Single Layer Mathematical Flow", 564)),
        symbols=SYMBOLS,
        assumptions=ASSUMPTIONS,
        sample=sample,
        formula=attention_sublayer,
        steps=(_any_length, _same_input, _weaker_branch),
        costs=costs.lazily("layer_norm"),
    ),
    Equation(
        slug="block-attention",
        number="33",
        title="Attention, added to the stream",
        statement=r"\mathbf{h}_2 = \mathbf{x} + \text{MultiHeadAttn}(\mathbf{h}_1, \mathbf{h}_1, \mathbf{h}_1)",
        sources=(Source("002", "7.1", 901), Source("003", "7, Single Layer Mathematical Flow", 566)),
        symbols=SYMBOLS,
        assumptions=ASSUMPTIONS,
        sample=sample,
        formula=attention_sublayer,
        steps=(_any_length, _jacobian, _pullback),
        costs=COSTS,
    ),
)
