"""Softmax and its Jacobian (equations 1 and 25)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import delta, dimension, index, real, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic, symbols


def softmax(xp: Any, z: Any, axis: int = -1) -> Any:
    """p_i = e^{z_i} / Σ_j e^{z_j}, computed as e^{z_i − m} / Σ_j e^{z_j − m} with m = max z (equations 1, 21).

    z has any shape, its `axis` is not empty; entries may be −∞ as long as one along the axis is finite.
    """
    e = xp.exp(z - xp.max(z, axis=axis, keepdims=True))
    return e / xp.sum(e, axis=axis, keepdims=True)


def softmax_vjp(xp: Any, z: Any, g: Any, axis: int = -1) -> Any:
    """dz = p ⊙ (g − Σ_j p_j g_j): the cotangent g of softmax(z), pulled back through the Jacobian (25)."""
    p = softmax(xp, z, axis)
    return p * (g - xp.sum(p * g, axis=axis, keepdims=True))


def weight(i: Any, z: Any = None, shift: Any = 0) -> Any:
    """p_i as printed, for z + shift of any length n: the expression that proofs for all n start from."""
    z = vector("z") if z is None else z
    j = sp.Dummy("j", integer=True)
    return sp.exp(z[i] + shift) / symbolic_sum(sp.exp(z[j] + shift), j, dimension("n"))


def jacobian(i: Any, j: Any) -> Any:
    """∂p_i / ∂z_j as printed in (25)."""
    return weight(i) * (delta(i, j) - weight(j))


@step()
def _sums_to_one() -> Identities:
    r"""The weights sum to one: $\sum_i p_i = 1$, since the denominator is the sum of the numerators."""
    i = index("i")
    yield symbolic_sum(weight(i), i, dimension("n")), 1


@step()
def _shift_invariance() -> Identities:
    r"""Adding one number to all scores changes nothing: $p(\mathbf{z} + c) = p(\mathbf{z})$."""
    yield weight(index("i"), shift=real("c")), weight(index("i"))


@step()
def _between_zero_and_one() -> Identities:
    r"""$p_i \sum_j e^{z_j - z_i} = 1$, a sum of positive terms, of which $j = i$ is 1: so $0 < p_i \le 1$."""
    z, (i, j) = vector("z"), index("i j")
    yield weight(i) * symbolic_sum(sp.exp(z[j] - z[i]), j, dimension("n")), 1


@step()
def _ratio() -> Identities:
    """Only differences count, and they count exponentially: $p_i / p_j = e^{z_i - z_j}$."""
    z, (i, j) = vector("z"), index("i j")
    yield weight(i) / weight(j), sp.exp(z[i] - z[j])


@step(scope=Scope.ENUMERATED, detail="n ≤ 4, every m")
def _stable_form() -> Identities:
    r"""Hence $e^{z_i - m} / \sum_j e^{z_j - m}$ is the same for every $m$; with $m = \max z$ nothing overflows. That is
    what the formula computes.
    """
    for n in range(1, 5):
        xp = TowerArithmetic()
        z = xp.symbols("z", n)
        printed = [sp.exp(e) / sum(map(sp.exp, z.value)) for e in z.value]
        yield from entrywise([xp.in_full(p) for p in softmax(xp, z).value], printed)


@step()
def _derivative() -> Identities:
    r"""The quotient rule on (1): $\partial p_i / \partial z_j = p_i (\delta_{ij} - p_j)$."""
    i, j = index("i j")
    yield sp.diff(weight(i), vector("z")[j]), jacobian(i, j)


@step()
def _rows_sum_to_zero() -> Identities:
    """Rows and columns of the Jacobian sum to zero: one weight grows only at the others' expense."""
    i, j = index("i j")
    n = dimension("n")
    yield symbolic_sum(jacobian(i, j), j, n), 0
    yield symbolic_sum(jacobian(i, j), i, n), 0


@step()
def _semidefinite() -> Identities:
    r"""$\mathbf{g}^T J \mathbf{g} = \frac{1}{2} \sum_{ij} p_i p_j (g_i - g_j)^2 \ge 0$: the variance of g under p."""
    i, j = index("i j")
    n, g = dimension("n"), vector("g")
    form = symbolic_sum(symbolic_sum(g[i] * jacobian(i, j) * g[j], i, n), j, n)
    yield form, symbolic_sum(symbolic_sum(weight(i) * weight(j) * (g[i] - g[j]) ** 2, i, n), j, n) / 2


@step()
def _saturation() -> Identities:
    r"""Its diagonal sums to $1 - \sum_i p_i^2 = \sum_{i \neq j} p_i p_j$, a bound on every entry, as J is semidefinite:
    the nearer one weight is to 1, the nearer all of J is to zero. That is how peaked weights lead to vanishing
    gradients.
    """
    i, j, n = index("i"), index("j"), dimension("n")
    pairs = symbolic_sum(symbolic_sum((1 - delta(i, j)) * weight(i) * weight(j), i, n), j, n)
    yield symbolic_sum(jacobian(i, i), i, n), 1 - symbolic_sum(weight(i) ** 2, i, n)
    yield symbolic_sum(jacobian(i, i), i, n), pairs


@step()
def _pullback() -> Identities:
    r"""A cotangent is pulled back by $\sum_i g_i J_{ik} = p_k (g_k - \sum_j p_j g_j)$."""
    i, j, k = index("i j k")
    n, g = dimension("n"), vector("g")
    yield symbolic_sum(g[i] * jacobian(i, k), i, n), weight(k) * (g[k] - symbolic_sum(weight(j) * g[j], j, n))


_any_vjp = vjp_step(lambda: pullbacks(softmax, softmax_vjp, {"z": "m n"}, axis=0))


@step()
def any_length() -> Identities:
    """The formula computes the statement, for every n, and with any number for the largest score."""
    xp, i = AnyLength(), index("i")
    yield computed(softmax, xp, xp.array("z", dimension("n"))).then(entry(i)), weight(i)


@step()
def _any_pullback() -> Identities:
    r"""The vector-Jacobian product that is computed is $\sum_i g_i \, \partial p_i / \partial z_j$, for every n."""
    xp, n, (i, j) = AnyLength(), dimension("n"), index("i j")
    pulled = computed(softmax_vjp, xp, xp.array("z", n), xp.array("g", n)).then(entry(j))
    yield pulled, symbolic_sum(vector("g")[i] * jacobian(i, j), i, n)


@erratum(
    kind="wrong",
    source=Source("004", "3.2", 344),
    printed=r"\frac{\partial A_{ij}}{\partial S_{mn}} = A_{ij} (\delta_{im} - A_{in})",
    corrected=r"\frac{\partial A_{ij}}{\partial S_{mn}} = \delta_{im} A_{ij} (\delta_{jn} - A_{in})",
)
def _softmax_of_a_matrix() -> Evidence:
    a = symbols("s", 2, 2)
    p = [[sp.exp(a[i, j]) / (sp.exp(a[i, 0]) + sp.exp(a[i, 1])) for j in range(2)] for i in range(2)]
    zero = dict.fromkeys(a.ravel(), 0)
    actual = sp.diff(p[0][0], a[1, 0]).subs(zero)
    return Evidence(
        "S = 0 of size 2 × 2, the derivative of A_11 by S_21",
        -(p[0][0] * p[0][0]).subs(zero),
        actual,
        letters={
            **{name: range(1, 3) for name in "ijmn"},
            "A": p,
            "delta": np.eye(2, dtype=int),
            "dA/dS": [[[[sp.diff(e, a[m, n]) for n in range(2)] for m in range(2)] for e in row] for row in p],
        },
    )


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    return {"z": rng.normal(size=(int(rng.integers(1, 4)), int(rng.integers(1, 6)))) * 3}


_FINITE = (
    Assumption("every score is a real number", lambda a: bool(np.isfinite(a["z"]).all())),
    Assumption("there is at least one score", lambda a: a["z"].shape[-1] > 0),
)
_SYMBOLS = (
    Symbol(r"\mathbf{z}", r"\mathbb{R}^n", "scores (logits)", "finite"),
    Symbol("n", r"\mathbb{N}", "number of scores", "at least 1"),
)

_JACOBIAN_COSTS = {
    "other operations": lambda: 4 * costs.symbol("N") * costs.symbol("d"),
    "other operations, with the matrix": lambda: 4 * costs.symbol("N") * costs.symbol("d") ** 2,
    "bytes": lambda: 3 * costs.symbol("w") * costs.symbol("N") * costs.symbol("d"),
    "bytes of the matrix": lambda: costs.symbol("w") * costs.symbol("N") * costs.symbol("d") ** 2,
    "parameters": lambda: sp.S.Zero,
}

EQUATIONS = (
    Equation(
        slug="softmax",
        number="1",
        title="Softmax",
        statement=r"\text{softmax}(\mathbf{z})_i = \frac{e^{z_i}}{\sum_{j=1}^n e^{z_j}}",
        sources=(Source("002", "2.2.4", 392), Source("004", "2.1", 109)),
        symbols=_SYMBOLS,
        assumptions=_FINITE,
        sample=_sample,
        formula=softmax,
        vjp=softmax_vjp,
        steps=(_sums_to_one, _between_zero_and_one, _shift_invariance, _stable_form, any_length, _ratio),
        costs=costs.lazily("softmax"),
    ),
    Equation(
        slug="softmax-jacobian",
        number="25",
        title="The Jacobian of softmax",
        statement=r"\frac{\partial p_i}{\partial z_j} = p_i(\delta_{ij} - p_j)",
        sources=(Source("002", "5.3", 693),),
        symbols=(
            *_SYMBOLS,
            Symbol(r"\mathbf{p}", r"(0, 1]^n", "softmax of the scores"),
            Symbol(r"\delta_{ij}", r"\{0, 1\}", "1 where i = j, else 0"),
        ),
        assumptions=_FINITE,
        sample=_sample,
        formula=softmax,
        vjp=softmax_vjp,
        steps=(_derivative, _rows_sum_to_zero, _semidefinite, _saturation, _pullback, _any_pullback, _any_vjp),
        costs=_JACOBIAN_COSTS,
        errata=(_softmax_of_a_matrix,),
    ),
)
