"""The log-sum-exp trick (equation 12)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic.exact_inputs import exactly_equal
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Identities, Source, Symbol, step
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, index, real, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step
from veriformer.spec.scores.softmax import weight


def logsumexp(xp: Any, z: Any, axis: int = -1) -> Any:
    """log Σ_i e^{z_i} = c + log Σ_i e^{z_i − c} with c = max z; −∞ over an empty axis, or one that is all −∞."""
    axis %= z.ndim
    shape = z.shape[:axis] + z.shape[axis + 1 :]
    if z.shape[axis] == 0:
        return xp.broadcast_to(xp.asarray(-math.inf), shape)
    c, e, empty = _shifted(xp, z, axis)
    total = xp.where(empty, 1, xp.sum(e, axis=axis, keepdims=True))
    return xp.reshape(xp.where(empty, -math.inf, c + xp.log(total)), shape)


def logsumexp_vjp(xp: Any, z: Any, g: Any, axis: int = -1) -> Any:
    """dz_i = g · e^{z_i} / Σ_j e^{z_j}, with g of the result's shape; zero where every z is −∞."""
    axis %= z.ndim
    if z.shape[axis] == 0:
        return xp.asarray(z)
    _, e, empty = _shifted(xp, z, axis)
    p = e / xp.where(empty, 1, xp.sum(e, axis=axis, keepdims=True))
    return p * xp.reshape(g, (*z.shape[:axis], 1, *z.shape[axis + 1 :]))


def _shifted(xp: Any, z: Any, axis: int) -> tuple[Any, Any, Any]:
    m = xp.max(z, axis=axis, keepdims=True)
    empty = exactly_equal(m, -math.inf)
    c = xp.where(empty, 0, m)
    return c, xp.exp(z - c), empty


def _lse(shift: Any = 0) -> Any:
    j = sp.Dummy("j", integer=True)
    return sp.log(symbolic_sum(sp.exp(vector("z")[j] + shift), j, dimension("n")))


@step()
def _identity() -> Identities:
    r"""$\sum_i e^{x_i} = e^c \sum_i e^{x_i - c}$, and the logarithm of $e^c$ is c: true for every c."""
    c = real("c")
    yield _lse(), c + _lse(-c)


@step()
def _bounded() -> Identities:
    r"""With $c = \max x$ every term is $e^{-t}$ for a gap $t \ge 0$, and $1 - e^{-t} = \int_0^t e^{-s} ds \ge 0$: each
    is in $(0, 1]$, that of the largest score is 1, and n of them sum to n at most. So nothing overflows.
    """
    s, t, n, i = real("s"), sp.Symbol("t", nonnegative=True), dimension("n"), index("i")
    yield 1 - sp.exp(-t), computed(sp.integrate, sp.exp(-s), (s, 0, t))
    gaps = sp.IndexedBase("t", nonnegative=True)
    below = symbolic_sum(1 - sp.exp(-gaps[i]), i, n)
    yield n - symbolic_sum(sp.exp(-gaps[i]), i, n), below


@step()
def _translation() -> Identities:
    """Adding a number to all scores adds it to the result."""
    c = real("c")
    yield _lse(c), _lse() + c


@step()
def _gradient() -> Identities:
    r"""Its gradient is softmax: $\partial / \partial x_k = p_k$."""
    k = index("k")
    yield sp.diff(_lse(), vector("z")[k]), weight(k)


@step()
def _log_weight() -> Identities:
    r"""$p_k = e^{x_k - \mathrm{lse}(\mathbf{x})}$: whoever keeps the log-sum-exp can recompute the weights."""
    k = index("k")
    yield sp.exp(vector("z")[k] - _lse()), weight(k)


@step()
def _parts() -> Identities:
    r"""A further score gives $\mathrm{lse}(x_1, \dots, x_{n+1}) = \log(e^{\mathrm{lse}(x_1, \dots, x_n)} +
    e^{x_{n+1}})$, so it can be accumulated.
    """
    z, j, n = vector("z"), index("j"), dimension("n")
    yield sp.log(sp.exp(_lse()) + sp.exp(z[n + 1])), sp.log(symbolic_sum(sp.exp(z[j]), j, n + 1))


_any_vjp = vjp_step(lambda: pullbacks(logsumexp, logsumexp_vjp, {"z": "m n"}))


@step()
def _any_length() -> Identities:
    """The formula computes the left-hand side, for every n, with any number for c."""
    xp = AnyLength()
    yield computed(logsumexp, xp, xp.array("z", dimension("n"))).then(entry()), _lse()


EQUATIONS = (
    Equation(
        slug="logsumexp",
        number="12",
        title="The log-sum-exp trick",
        statement=r"\log\left(\sum_{i=1}^n e^{x_i}\right) = c + \log\left(\sum_{i=1}^n e^{x_i - c}\right)",
        sources=(Source("000", "9.5", 234), Source("001", "9.5", 286)),
        symbols=(
            Symbol(r"\mathbf{x}", r"\mathbb{R}^n", "scores", "finite"),
            Symbol("c", r"\mathbb{R}", "any number; the largest score prevents overflow"),
        ),
        assumptions=(
            Assumption("there is at least one score", lambda a: a["z"].shape[-1] > 0),
            Assumption("every score is a real number", lambda a: bool(np.isfinite(a["z"]).all())),
        ),
        sample=lambda rng: {"z": rng.normal(size=(2, int(rng.integers(1, 6)))) * 100},
        formula=logsumexp,
        vjp=logsumexp_vjp,
        steps=(
            _identity,
            _bounded,
            _translation,
            _gradient,
            _log_weight,
            _parts,
            _any_length,
            _any_vjp,
        ),
        costs=costs.lazily("logsumexp"),
    ),
)
