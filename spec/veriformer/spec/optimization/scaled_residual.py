"""Scaled residuals: how weak a branch must be for deep stacks (document 002, section 3.4)."""

from __future__ import annotations

from typing import Any

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import elementwise
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Source, Symbol, erratum, step
from veriformer.spec.layers.residual import residual, residual_vjp
from veriformer.spec.optimization.residual_flow import sample
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import delta, dimension, index, positive, real, sum_over, vector
from veriformer.spec.proofs.provenance import computed


@step()
def _jacobian() -> Identities:
    r"""The Jacobian of a block is $I + \alpha J$: the smaller the scale, the closer to the identity."""
    h, w, alpha, (i, k) = vector("h"), vector("J"), positive("alpha"), index("i k")
    yield sp.diff(h[i] + alpha * sum_over("n", lambda j: w[i, j] * h[j]), h[k]), delta(i, k) + alpha * w[i, k]


@step()
def _any_length() -> Identities:
    """The formula computes the statement, for every n."""
    xp, n, i, alpha = AnyLength(), dimension("n"), index("i"), positive("alpha")
    after = computed(residual, xp, xp.array("h", n), xp.array("F", n), scale=alpha)
    yield after.then(entry(i)), vector("h")[i] + alpha * vector("F")[i]


def _outcomes(alpha: Any, spread: Any) -> Any:
    """The mean square of a stream ±σ after a block whose independent branch is ±spread: four equal chances."""
    xp, sigma = Symbolic(), positive("sigma")
    ends = [residual(xp, xp.asarray(h), xp.asarray(f), scale=alpha) for h in (sigma, -sigma) for f in (spread, -spread)]
    return sum(end.value[()] ** 2 for end in ends) / 4


@step(detail="streams and branches of two values, any two")
def _variance() -> Identities:
    r"""A branch of variance $\tau^2$ that is independent of the stream adds $\alpha^2 \tau^2$: after k layers the
    variance is $\sigma^2 + k \alpha^2 \tau^2$, by induction. With $\alpha = 1 / \sqrt{L}$ it is bounded at any depth L.
    """
    alpha, tau, sigma = positive("alpha tau sigma")
    k = dimension("k")
    after = sigma**2 + k * alpha**2 * tau**2
    yield _outcomes(alpha, tau), sigma**2 + alpha**2 * tau**2
    yield _outcomes(alpha, tau).subs(sigma**2, after), after.subs(k, k + 1)


@step(detail="streams and branches of two values, any two")
def _growing_branch() -> Identities:
    r"""A branch as large as the stream multiplies the variance by $1 + \alpha^2$: by $(1 + \alpha^2)^k \le e^{\alpha^2
    k}$ after k layers, which $\alpha = 1 / \sqrt{L}$ keeps below e, and any fixed α does not keep at all.
    """
    (alpha, sigma), k = positive("alpha sigma"), dimension("k")
    yield _outcomes(alpha, sigma), (1 + alpha**2) * sigma**2
    yield (1 + alpha**2) * ((1 + alpha**2) ** k * sigma**2), (1 + alpha**2) ** (k + 1) * sigma**2


@step()
def _aligned_branch() -> Identities:
    r"""A branch along the stream, $F(\mathbf{h}) = \mathbf{h}$, multiplies by $(1 + \alpha)^k$, and the gradient on its
    way back by as much: here only $\alpha \approx 1 / L$ will do.
    """
    xp, alpha, h, k = Symbolic(), positive("alpha"), real("h"), dimension("k")
    before = (1 + alpha) ** k * h
    yield residual(xp, xp.asarray(before), xp.asarray(before), scale=alpha).value[()], (1 + alpha) ** (k + 1) * h
    # Through the stream and through the branch, whose derivative is 1.
    dx, dfx = residual_vjp(xp, xp.asarray(h), xp.asarray(h), xp.asarray(before), scale=alpha)
    yield dx.value[()] + dfx.value[()], (1 + alpha) ** (k + 1) * h


@erratum(
    kind="imprecise",
    source=Source("002", "3.4", 512),
    printed=r"\alpha < 1 \text{ prevents residual explosion}",
    corrected=r"\text{growth is only slower; at depth } L \text{ it takes } \alpha \text{ of order } 1 / "
    r"\sqrt{L} \text{ for independent branches, and } 1 / L \text{ for any}",
)
def _below_one_is_not_enough() -> Evidence:
    xp = Symbolic()
    h = xp.asarray(1)
    for _ in range(96):
        h = residual(xp, h, h, scale=sp.Rational(1, 2))
    return Evidence(
        "F(h) = h, α = 0.5, 96 layers: h grows by a factor of",
        "no more than 1",
        sp.N(h.value[()], 3),
        letters={"alpha": 0, "L": 4},
        values=(sp.Rational(1, 2), sp.Rational(1, 4)),
    )


EQUATIONS = (
    Equation(
        slug="scaled-residual",
        number=None,
        title="Scaled residuals",
        statement=r"\mathbf{h}_{l+1} = \mathbf{h}_l + \alpha \cdot F(\mathbf{h}_l)",
        sources=(Source("002", "3.4", 510),),
        symbols=(
            Symbol(r"\alpha", r"\mathbb{R}_{\ge 0}", "scale of the branch"),
            Symbol(r"\sigma^2, \tau^2", r"\mathbb{R}_{\ge 0}", "variances of the stream and of the branch"),
            Symbol("L", r"\mathbb{N}", "the number of layers"),
        ),
        assumptions=(
            Assumption("F keeps the shape", lambda a: a["x"].shape == a["fx"].shape),
            Assumption("the scale is not negative", lambda a: a["scale"] >= 0),
        ),
        sample=sample,
        formula=residual,
        vjp=residual_vjp,
        steps=(_jacobian, _any_length, _variance, _growing_branch, _aligned_branch),
        costs=elementwise(2, arrays=3),
        errata=(_below_one_is_not_enough,),
    ),
)
