"""Why the residual path of a pre-norm stack keeps an identity Jacobian (documents 002, section 3.4, and 003, 7)."""

from __future__ import annotations

from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.blocks.published import ASSUMPTIONS, block_sample
from veriformer.spec.blocks.transformer_block import transformer_block, transformer_block_vjp
from veriformer.spec.equation import Equation, Identities, Source, Symbol, step
from veriformer.spec.layers.norm_algebra import jacobian, over_features, x_hat, x_of
from veriformer.spec.proofs.indexed import delta, dimension, index, symbolic_sum, vector


def block(i: Any, k: Any) -> Any:
    """∂h_{l+1,i} / ∂h_{l,k} = δ_ik + Σ_j W_ij ∂x̂_j/∂x_k."""
    w = vector("W")
    return delta(i, k) + over_features(lambda j: w[i, j] * jacobian(j, k))


@step()
def _sum_of_branches() -> Identities:
    r"""After L blocks the stream is $\mathbf{h}_0 + \sum_l F_l$, and one block more adds one more term: nothing is ever
    done to what is there.
    """
    h, f, i, l, n = vector("h"), vector("F"), index("i"), index("l"), dimension("L")
    yield h[i] + symbolic_sum(f[l, i], l, n + 1), h[i] + symbolic_sum(f[l, i], l, n) + f[n + 1, i]


@step()
def _one_block() -> Identities:
    """A block's Jacobian is $I + W J$ with the Jacobian J of the norm: the norm stands in the branch only."""
    w, (i, k) = vector("W"), index("i k")
    yield sp.diff(x_of(i) + over_features(lambda j: w[i, j] * x_hat(j)), x_of(k)), block(i, k)


@step()
def _any_depth() -> Identities:
    """If the blocks before have the Jacobian $I + R$, then with one more it is $I + (M + R + MR)$. By induction the
    identity stays as a term, with the factor 1, at any depth.
    """
    # The blocks before have the Jacobian I + R; M is the branch of the next one.
    m, r, (i, k) = vector("M"), vector("R"), index("i k")
    after = over_features(lambda j: (delta(i, j) + m[i, j]) * (delta(j, k) + r[j, k]))
    yield after, delta(i, k) + (m[i, k] + r[i, k] + over_features(lambda j: m[i, j] * r[j, k]))


@step()
def _constant_direction() -> Identities:
    r"""In one direction nothing can cancel it: the norm does not see a constant added to all features, so $(I + WJ)
    \mathbf{1} = \mathbf{1}$ for any branch, and by induction through any number of blocks.
    """
    i, r = index("i"), vector("R")
    yield over_features(lambda k: block(i, k)), 1
    # And by induction: if the blocks before send (1, …, 1) to itself, so does one more.
    before = over_features(lambda k: delta(i, k) + (r[i, k] - over_features(lambda j: r[i, j]) / dimension("d")))
    yield before, 1


EQUATIONS = (
    Equation(
        slug="pre-norm-path",
        number=None,
        title="The residual path before the norms",
        statement=r"\text{Pre-LN: } \mathbf{h}_{l+1} = \mathbf{h}_l + F(\text{LN}(\mathbf{h}_l))",
        sources=(Source("002", "3.4", 519), Source("003", "7, Single Layer Mathematical Flow", 582)),
        symbols=(
            Symbol(r"\mathbf{h}_l", r"\mathbb{R}^d", "the stream before block l"),
            Symbol("F_l", r"\mathbb{R}^d", "what the branch of block l adds"),
            Symbol("W", r"\mathbb{R}^{d \times d}", "the Jacobian of the branch"),
            Symbol("M, R", r"\mathbb{R}^{d \times d}", "Jacobians of branches with their norms: one, and all before"),
        ),
        assumptions=ASSUMPTIONS,
        sample=block_sample,
        formula=transformer_block,
        vjp=transformer_block_vjp,
        steps=(_sum_of_branches, _one_block, _any_depth, _constant_direction),
    ),
)
