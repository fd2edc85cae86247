"""The norm after the sum, its original place, and what becomes of the identity there (002, 3.4, and 004, 1)."""

from __future__ import annotations

from typing import Any

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.blocks.costs_block import COSTS
from veriformer.spec.blocks.published import ASSUMPTIONS, Case, block_sample
from veriformer.spec.blocks.transformer_block import attention_sublayer, transformer_block, transformer_block_vjp
from veriformer.spec.equation import Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.layers.layer_norm import layer_norm_vjp
from veriformer.spec.layers.norm_algebra import jacobian, over_features, variance, x_hat, x_of
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import delta, dimension, index, positive, vector


def _summed(i: Any) -> Any:
    """Feature i of h + F(h), for a branch with the Jacobian W."""
    w = vector("W")
    return x_of(i) + over_features(lambda j: w[i, j] * x_of(j))


@step()
def _jacobian() -> Identities:
    """The block's Jacobian is $J (I + W) = J + J W$: every path goes through the norm, the one past the branch too."""
    u, w, (i, k) = vector("u"), vector("W"), index("i k")

    def stream(j: Any) -> Any:
        return u[j]

    yield sp.diff(_summed(i), x_of(k)), delta(i, k) + w[i, k]
    yield sp.diff(x_hat(i, stream), u[k]), jacobian(i, k, stream)
    through = over_features(lambda j: jacobian(i, j, stream) * (delta(j, k) + w[j, k]))
    yield through, jacobian(i, k, stream) + over_features(lambda j: jacobian(i, j, stream) * w[j, k])


@step()
def _no_constant() -> Identities:
    r"""$\mathbf{1}^T J = 0$: what the loss wants of all features alike is lost in every block, whatever the branch
    does.
    """
    w, k = vector("W"), index("k")
    yield over_features(lambda i: jacobian(i, k)), 0
    yield over_features(lambda i: over_features(lambda j: jacobian(i, j) * (delta(j, k) + w[j, k]))), 0


@step()
def _no_length() -> Identities:
    r"""$J \mathbf{x} = \hat{\mathbf{x}} \epsilon / (\sigma^2 + \epsilon)$: neither does the stream's length pass, up to
    ε. On the $d - 2$ directions that are left J is $1 / \sqrt{\sigma^2 + \epsilon}$ times the identity (19).
    """
    k, eps = index("k"), positive("epsilon")
    # The derivative along x itself: what is left of it vanishes with ε.
    yield over_features(lambda j: jacobian(k, j) * x_of(j)), x_hat(k) * eps / (variance() + eps)


@step(detail="a stream of ±1 and a branch of ±τ, independent")
def _shrinking_path() -> Identities:
    r"""After a norm the stream has variance 1; an independent branch of variance $\tau^2$ makes it $1 + \tau^2$, so the
    norm divides the path past the branch by $\sqrt{1 + \tau^2}$. After k blocks its square is $(1 + \tau^2)^{-k}$,
    where before the norms it is 1: at $\tau = 1$ it halves with every block.
    """
    # A stream ±1, as a norm leaves it, and an independent branch ±τ: four equally likely sums.
    tau, k = positive("tau"), dimension("k")
    spread = sum((h + f) ** 2 for h in (1, -1) for f in (tau, -tau)) / 4
    yield spread, 1 + tau**2
    path = (1 + tau**2) ** k
    yield path * spread, (1 + tau**2) ** (k + 1)


@step(scope=Scope.ENUMERATED, detail="one head, ReLU; (n, d) of (1, 2) and (2, 1), the second half of (1, 2)")
def _formula() -> Identities:
    """The formula with its norms after the sums is the statement, half by half."""
    for n, d in ((1, 2), (2, 1)):
        case = Case(n, d, 1)
        x = case.x.value[0]
        first = attention_sublayer(case.xp, case.x, case.params, norm="post", **case.options)
        yield from entrywise(case.in_full(first), case.norm(1, x + case.attended(x)))
    # With a weight of zero the first norm gives its bias, whatever it reads: what the second half does to any Y.
    case = Case(1, 2, 1).without("norm1_weight")
    y = case.params["norm1_bias"].value[None]
    second = transformer_block(case.xp, case.x, case.params, norm="post", activation="relu", **case.options)
    yield from entrywise(second, case.norm(2, y + case.thought(y)))


@erratum(
    kind="imprecise",
    source=Source("004", "3.3", 382),
    printed=r"\text{Residual connections … allowing gradients to bypass nonlinear sublayers}",
    corrected=r"\text{in the layer of line 85 they bypass the branch, but not LayerNorm, which is "
    r"nonlinear and stands on the path; they do in a block that normalises inside the branch}",
)
def _no_bypass() -> Evidence:
    xp = Symbolic()
    gradient = layer_norm_vjp(xp, xp.asarray([0, 2]), None, None, xp.asarray([1, 1]), eps=sp.Rational(1, 10))[0]
    point = "F = 0, x = (0, 2), the cotangent (1, 1), LayerNorm(x + F(x)): what arrives before the block"
    return Evidence(point, "(1, 1)", str(tuple(gradient.value)))


@erratum(
    kind="convention",
    source=Source("004", "1.3", 85),
    printed=r"\text{Each Transformer layer: } Y = \mathrm{LayerNorm}(X + \mathrm{MHA}(X)), \ Z = "
    r"\mathrm{LayerNorm}(Y + \mathrm{FFN}(Y))",
    corrected=r"\text{two kinds of layers: the original one here, and the one of equations 32 to 35}",
)
def _two_layers() -> Evidence:
    xp, x = Symbolic(), [[[0, 2]]]
    zero = {"w_q": [[0], [0]], "w_k": [[0], [0]], "w_v": [[0], [0]], "w_o": [[0, 0]], "w1": [[0], [0]], "b1": [0]}
    zero |= {"w2": [[0, 0]], "b2": [0, 0], "norm1_bias": [0, 0], "norm2_bias": [0, 0]}
    params = {name: xp.asarray(p) for name, p in zero.items()} | {f"norm{i}_weight": xp.asarray([1, 1]) for i in (1, 2)}
    one: dict[str, Any] = {"num_heads": 1, "activation": "relu", "eps": 0}
    post, pre = (transformer_block(xp, xp.asarray(x), params, norm=norm, **one).value[0, 0] for norm in ("post", "pre"))
    return Evidence(
        "x = (0, 2), branches that add nothing, ε = 0: lines 85 and 86, and lines 900 to 903 of 002",
        tuple(post),
        tuple(pre),
    )


EQUATIONS = (
    Equation(
        slug="post-norm-block",
        number=None,
        title="The block with its norms after the sums",
        statement=r"\text{Post-LN: } \mathbf{h}_{l+1} = \text{LN}(\mathbf{h}_l + F(\mathbf{h}_l)), \quad "
        r"Y = \mathrm{LayerNorm}(X + \mathrm{MHA}(X)), \quad Z = \mathrm{LayerNorm}(Y + \mathrm{FFN}(Y))",
        sources=(Source("002", "3.4", 520), Source("004", "1.3", 85)),
        symbols=(
            Symbol("W", r"\mathbb{R}^{d \times d}", "the Jacobian of the branch"),
            Symbol("J", r"\mathbb{R}^{d \times d}", "the Jacobian of the norm, at the sum"),
            Symbol(r"\tau^2", r"\mathbb{R}_{> 0}", "the variance of the branch, where that of the stream is 1"),
        ),
        assumptions=ASSUMPTIONS,
        sample=block_sample,
        formula=transformer_block,
        vjp=transformer_block_vjp,
        steps=(_jacobian, _no_constant, _no_length, _shrinking_path, _formula),
        costs=COSTS,
        errata=(_no_bypass, _two_layers),
    ),
)
