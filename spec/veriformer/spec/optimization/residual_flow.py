"""The residual block, and the flow that it approximates (equation 4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import elementwise
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.layers.residual import residual, residual_vjp
from veriformer.spec.optimization.euler import LOCAL_ERROR
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import delta, dimension, index, positive, real, sum_over, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step


@step(detail="linear F, one coordinate")
def _shorter_steps() -> Identities:
    r"""Two blocks at half the scale differ from one by $\frac{a^2}{4} h$, half of the leading error $\frac{a^2}{2} h$:
    more and weaker blocks come closer to the flow.
    """
    # Two blocks after each other, each of half the scale, against one: what half the step length gains on F = a x.
    a, x = real("a x")
    xp = Symbolic()
    h = xp.asarray(x)
    for _ in range(2):
        h = residual(xp, h, h * a, scale=sp.Rational(1, 2))
    yield h.value[()] - residual(xp, xp.asarray(x), xp.asarray(a * x)).value[()], a**2 / 4 * x


@step(detail="linear F, one coordinate")
def _unit_step() -> Identities:
    r"""A residual block is such a step of length 1. On $F = a h$ it misses $e^a - (1 + a) = a^2 \int_0^1 (1 - s) e^{as}
    ds$ of the flow: it approximates it only where F changes little within a block.
    """
    # ∫₀¹ (1 − s) e^{as} ds by its antiderivative.
    a, s = real("a s")
    primitive = ((1 - s) / a + 1 / a**2) * sp.exp(a * s)
    yield sp.diff(primitive, s), (1 - s) * sp.exp(a * s)
    yield a**2 * (primitive.subs(s, 1) - primitive.subs(s, 0)), sp.exp(a) - (1 + a)


@step()
def _jacobian() -> Identities:
    """The Jacobian of a block is $I + J$: the gradient passes unchanged beside F."""
    h, w, (i, k) = vector("h"), vector("J"), index("i k")
    yield sp.diff(h[i] + sum_over("n", lambda j: w[i, j] * h[j]), h[k]), delta(i, k) + w[i, k]


@step()
def _one_block_more() -> Identities:
    """A block after others with Jacobian P gives $(I + J) P = P + J P$: whatever gradient there was stays as a term,
    for any number of blocks.
    """
    j_, p, (i, k) = vector("J"), vector("P"), index("i k")
    block = sum_over("n", lambda j: (delta(i, j) + j_[i, j]) * p[j, k])
    yield block, p[i, k] + sum_over("n", lambda j: j_[i, j] * p[j, k])


@step(scope=Scope.ENUMERATED, detail="L = 3, n = 2")
def _paths() -> Identities:
    """Multiplied out, L blocks are $2^L$ paths, from I, which passes all of them by, to the product of all J, which is
    all that a stack without skip connections has.
    """
    blocks = [sp.Matrix(2, 2, sp.symbols(f"{name}_1:5", real=True)) for name in "abc"]
    one = sp.eye(2)
    a, b, c = blocks
    through = one + a + b + c + a * b + a * c + b * c + a * b * c
    yield from zip((one + a) * (one + b) * (one + c), through, strict=True)


@step()
def _depth() -> Identities:
    r"""L blocks that each stretch by a factor of at most $1 + a$ stretch by at most $(1 + a)^L$, which grows without
    bound for a fixed a, as $(1 + a)^L \ge 1 + L a$ (by induction; the step leaves $L a^2$ over); with $a = c / L$ it
    stays below $e^c$, as $e^a - (1 + a) = a^2 \int_0^1 (1 - s) e^{as} ds \ge 0$.
    """
    c, a, s, depth = positive("c"), positive("a"), real("s"), dimension("L")
    yield (1 + a) * (1 + depth * a), 1 + (depth + 1) * a + depth * a**2
    yield computed(sp.integrate, a**2 * (1 - s) * sp.exp(a * s), (s, 0, 1)), sp.exp(a) - (1 + a)
    yield (sp.exp(c / depth) / (1 + c / depth)) ** depth, sp.exp(c) / (1 + c / depth) ** depth


_any_vjp = vjp_step(lambda: pullbacks(residual, residual_vjp, {"h": "n", "F": "n"}, scale=positive("a")))


@step()
def _any_length() -> Identities:
    """The formula computes the statement, for every n, and with a scale that much of the branch."""
    xp, n, i, a = AnyLength(), dimension("n"), index("i"), positive("a")
    h, branch = xp.array("h", n), xp.array("F", n)
    yield computed(residual, xp, h, branch).then(entry(i)), vector("h")[i] + vector("F")[i]
    yield computed(residual, xp, h, branch, scale=a).then(entry(i)), vector("h")[i] + a * vector("F")[i]


@erratum(
    kind="imprecise",
    source=Source("002", "2.1.3", 335),
    printed=r"\text{gradients can flow directly backward … ensuring that even early layers receive "
    r"useful training signals}",
    corrected=r"\text{the identity is one term of } I + J \text{; where } J \text{ is near } -I "
    r"\text{ they cancel}",
)
def _highway_can_be_blocked() -> Evidence:
    xp, h = Symbolic(), real("h")
    out = residual(xp, xp.asarray(h), xp.asarray(-h)).value[()]
    return Evidence(
        "F(h) = −h: the derivative of the block, through which all gradients pass",
        "not zero",
        sp.diff(out, h),
        letters={"I": 1, "J": -1},
        values=(sp.diff(out, h), -1),
    )


@erratum(
    kind="imprecise",
    source=Source("002", "2.1.3", 339),
    printed=r"\text{The transformation } F \text{ should be well-conditioned to avoid exploding/vanishing gradients}",
    corrected=r"\text{the Jacobian should be small, of the order of one over the number of blocks; a well-conditioned "
    r"one may be large}",
)
def _well_conditioned_explodes() -> Evidence:
    xp, h = Symbolic(), real("h")
    out = xp.asarray(h)
    for _ in range(10):
        out = residual(xp, out, out)
    point = "F(h) = h, of condition number 1, in ten blocks: the factor of a gradient"
    return Evidence(point, 1, sp.diff(out.value[()], h))


def sample(rng: np.random.Generator) -> dict[str, Any]:
    """A stream, a branch and its scale."""
    x, fx = rng.normal(size=(2, 2, 3))
    return {"x": x, "fx": fx, "scale": float(rng.uniform(0, 1))}


EQUATIONS = (
    Equation(
        slug="residual-flow",
        number="4",
        title="Residual blocks as a discretised flow",
        statement=r"\frac{d\mathbf{h}}{dt} = F(\mathbf{h}), \quad \mathbf{h}_{l+1} = \mathbf{h}_l + F(\mathbf{h}_l)",
        sources=(Source("002", "2.1.3", 328), Source("002", "2.1.3", 326)),
        symbols=(
            Symbol(r"\mathbf{h}", r"\mathbb{R}^n", "the hidden state"),
            Symbol("F", r"\mathbb{R}^n \to \mathbb{R}^n", "the block without its skip connection", "differentiable"),
            Symbol("J", r"\mathbb{R}^{n \times n}", "the Jacobian of F"),
        ),
        assumptions=(Assumption("F keeps the shape", lambda a: a["x"].shape == a["fx"].shape),),
        sample=sample,
        formula=residual,
        vjp=residual_vjp,
        steps=(
            *LOCAL_ERROR,
            _unit_step,
            _shorter_steps,
            _jacobian,
            _one_block_more,
            _paths,
            _depth,
            _any_length,
            _any_vjp,
        ),
        costs=elementwise(2, arrays=3),
        errata=(_highway_can_be_blocked, _well_conditioned_explodes),
    ),
)
