"""Gradients of linear and quadratic forms, and what a transpose does (document 002, sections 2.1.1 and 2.2.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Identities, Source, Symbol, step
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, index, sum_over, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step


def quadratic_form(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """f(x) = xᵀ A x + b · x for a [n, n], b [n] and x [n]."""
    return xp.sum(x * (_apply(xp, a, x) + b))


def quadratic_form_vjp(xp: Any, a: Any, b: Any, x: Any, g: Any) -> tuple[Any, Any, Any]:
    """dA = g x xᵀ, db = g x, dx = g ((A + Aᵀ) x + b), for a number g."""
    column = xp.reshape(x, (-1, 1))
    both = _apply(xp, a, x) + _apply(xp, xp.swapaxes(a, 0, 1), x)
    return column * xp.reshape(x, (1, -1)) * g, x * g, (both + b) * g


def _apply(xp: Any, a: Any, x: Any) -> Any:
    return xp.reshape(xp.matmul(a, xp.reshape(x, (-1, 1))), (-1,))


@step()
def _linear() -> Identities:
    r"""$\nabla (\mathbf{b} \cdot \mathbf{x}) = \mathbf{b}$."""
    b, x, k = vector("b"), vector("x"), index("k")
    yield sp.diff(sum_over("n", lambda i: b[i] * x[i]), x[k]), b[k]


def _form(x: Any) -> Any:
    a = vector("A")
    return sum_over("n", lambda i: sum_over("n", lambda j: x(i) * a[i, j] * x(j)))


@step()
def _quadratic() -> Identities:
    r"""$\nabla (\mathbf{x}^T A \mathbf{x}) = (A + A^T) \mathbf{x}$, which is $2 A \mathbf{x}$ only for a symmetric A;
    the second derivatives are $A + A^T$.
    """
    a, x, (k, r) = vector("A"), vector("x"), index("k r")
    gradient = sum_over("n", lambda j: (a[k, j] + a[j, k]) * x[j])
    yield sp.diff(_form(lambda i: x[i]), x[k]), gradient
    yield sp.diff(gradient, x[r]), a[k, r] + a[r, k]


@step()
def _squared_norm() -> Identities:
    r"""$\nabla \|\mathbf{x}\|^2 = 2 \mathbf{x}$ in any dimension; for two coordinates that is the statement."""
    x, k = vector("x"), index("k")
    yield sp.diff(sum_over("n", lambda i: x[i] ** 2), x[k]), 2 * x[k]


@step()
def _trace() -> Identities:
    r"""Column by column, $\nabla_X \text{tr}(X^T A X) = (A + A^T) X$."""
    a, x, (k, r) = vector("A"), vector("X"), index("k r")
    columns = sum_over("m", lambda c: sum_over("n", lambda i: sum_over("n", lambda j: x[i, c] * a[i, j] * x[j, c])))
    yield sp.diff(columns, x[k, r]), sum_over("n", lambda j: (a[k, j] + a[j, k]) * x[j, r])


@step()
def _second_order() -> Identities:
    r"""$f(\mathbf{x} + \mathbf{h}) = f(\mathbf{x}) + \nabla f \cdot \mathbf{h} + \mathbf{h}^T A \mathbf{h}$ without a
    remainder.
    """
    # f(x + h) is exactly its Taylor polynomial of second order.
    a, x, h = vector("A"), vector("x"), vector("h")
    slope = sum_over("n", lambda k: sum_over("n", lambda j: (a[k, j] + a[j, k]) * x[j]) * h[k])
    yield _form(lambda i: x[i] + h[i]), _form(lambda i: x[i]) + slope + _form(lambda i: h[i])


@step()
def _any_length() -> Identities:
    r"""The formula computes $\mathbf{x}^T A \mathbf{x} + \mathbf{b} \cdot \mathbf{x}$, for every n."""
    xp, n = AnyLength(), dimension("n")
    a, b, x = vector("a"), vector("b"), vector("x")
    square = sum_over(n, lambda i: sum_over(n, lambda j: x[i] * a[i, j] * x[j]))
    arrays = xp.array("a", n, n), xp.array("b", n), xp.array("x", n)
    yield computed(quadratic_form, xp, *arrays).then(entry()), square + sum_over(n, lambda i: b[i] * x[i])


_any_vjp = vjp_step(lambda: pullbacks(quadratic_form, quadratic_form_vjp, {"a": "n n", "b": "n", "x": "n"}))


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    n = int(rng.integers(1, 5))
    return {"a": rng.normal(size=(n, n)), "b": rng.normal(size=n), "x": rng.normal(size=n)}


EQUATIONS = (
    Equation(
        slug="quadratic-forms",
        number=None,
        title="Gradients of linear and quadratic forms",
        statement=r"\nabla (x^2 + y^2) = (2x, 2y)^T",
        sources=(Source("002", "2.1.1", 116), Source("002", "2.1.1", 125)),
        symbols=(
            Symbol(r"\mathbf{x}", r"\mathbb{R}^n", "a vector"),
            Symbol("A", r"\mathbb{R}^{n \times n}", "a matrix", "not symmetric as a rule"),
            Symbol(r"\mathbf{b}", r"\mathbb{R}^n", "a vector"),
        ),
        assumptions=(Assumption("the form is of one size", lambda a: a["a"].shape == (*a["b"].shape, *a["x"].shape)),),
        sample=_sample,
        formula=quadratic_form,
        vjp=quadratic_form_vjp,
        steps=(_linear, _squared_norm, _quadratic, _trace, _second_order, _any_length, _any_vjp),
    ),
)
