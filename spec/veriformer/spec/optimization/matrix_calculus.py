"""Matrix calculus: trace, vec, the Kronecker product and the chain rule (documents 000 and 001, appendix B.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.proofs.any_length import AnyLength, entry, place
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import dimension, index, sum_over, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic


def vec(xp: Any, x: Any) -> Any:
    """The columns of x [m, n] below one another: [m n], entry j m + i is x_ij."""
    return xp.reshape(xp.swapaxes(x, 0, 1), (-1,))


def trace_of_product(xp: Any, a: Any, b: Any) -> Any:
    """tr(A B) = vec(Aᵀ)ᵀ vec(B) for a [m, n] and b [n, m]."""
    return xp.sum(vec(xp, xp.swapaxes(a, 0, 1)) * vec(xp, b))


def trace_of_product_vjp(xp: Any, a: Any, b: Any, g: Any) -> tuple[Any, Any]:
    """dA = g Bᵀ and dB = g Aᵀ, for a number g."""
    return xp.swapaxes(b, 0, 1) * g, xp.swapaxes(a, 0, 1) * g


def kronecker(xp: Any, a: Any, b: Any) -> Any:
    """A ⊗ B for a [m, n] and b [p, q]: [m p, n q], the blocks a_ij B."""
    (m, n), (p, q) = a.shape, b.shape
    return xp.reshape(xp.reshape(a, (m, 1, n, 1)) * xp.reshape(b, (1, p, 1, q)), (m * p, n * q))


def vec_of_product(xp: Any, a: Any, x: Any, b: Any) -> Any:
    """vec(A X B) = (Bᵀ ⊗ A) vec(X), by the larger matrix."""
    column = xp.reshape(vec(xp, x), (-1, 1))
    return xp.reshape(xp.matmul(kronecker(xp, xp.swapaxes(b, 0, 1), a), column), (-1,))


def sandwich(xp: Any, a: Any, x: Any, b: Any) -> Any:
    """Y = A X B."""
    return xp.matmul(xp.matmul(a, x), b)


def sandwich_vjp(xp: Any, a: Any, x: Any, b: Any, g: Any) -> tuple[Any, Any, Any]:
    """dA = G (X B)ᵀ, dX = Aᵀ G Bᵀ, dB = (A X)ᵀ G: the chain rule through Y = A X B."""
    left, right = xp.matmul(a, x), xp.matmul(x, b)
    d_x = xp.matmul(xp.matmul(xp.swapaxes(a, 0, 1), g), xp.swapaxes(b, 0, 1))
    return xp.matmul(g, xp.swapaxes(right, 0, 1)), d_x, xp.matmul(xp.swapaxes(left, 0, 1), g)


def _product(i: Any, r: Any) -> Any:
    """(A X B)_ir with A [m, n], X [n, p], B [p, q]."""
    a, x, b = vector("A"), vector("X"), vector("B")
    return sum_over("n", lambda j: sum_over("p", lambda k: a[i, j] * x[j, k] * b[k, r]))


@step("entries")
def _trace() -> Identities:
    r"""$\text{tr}(AB) = \sum_i \sum_j a_{ij} b_{ji}$: each entry of B meets the entry of $A^T$ in the same place, and
    $\text{tr}(AB) = \text{tr}(BA)$.
    """
    # Entry (k, l) of Aᵀ meets entry (k, l) of B: column by column, as vec reads them.
    a, b = vector("A"), vector("B")
    trace = sum_over("m", lambda i: sum_over("n", lambda j: a[i, j] * b[j, i]))
    yield trace, sum_over("m", lambda l: sum_over("n", lambda k: a[l, k] * b[k, l]))
    yield trace, sum_over("n", lambda k: sum_over("m", lambda l: b[k, l] * a[l, k]))


@step("entries")
def _kronecker() -> Identities:
    r"""Row $(r, i)$ of $B^T \otimes A$ holds $b_{kr} a_{ij}$ where $\text{vec}(X)$ holds $x_{jk}$, and $\sum_k \sum_j
    b_{kr} a_{ij} x_{jk} = (AXB)_{ir}$.
    """
    # Row (r, i) of Bᵀ ⊗ A holds b_kr a_ij in column (k, j), where vec(X) holds x_jk.
    a, x, b, (i, r) = vector("A"), vector("X"), vector("B"), index("i r")
    yield _product(i, r), sum_over("p", lambda k: sum_over("n", lambda j: b[k, r] * a[i, j] * x[j, k]))


@step()
def _sandwich() -> Identities:
    r"""For $Y = AXB$ the derivative of $y_{ir}$ by $x_{jk}$ is $a_{ij} b_{kr}$, and with $G = \partial f / \partial Y$
    the sum is a product of matrices again: $\partial f / \partial X = A^T G B^T$.
    """
    g, a, b, x = (vector(name) for name in "GABX")
    i, j, k, r = index("i j k r")
    loss = sum_over("m", lambda m: sum_over("q", lambda q: g[m, q] * _product(m, q)))
    yield sp.diff(_product(i, r), x[j, k]), a[i, j] * b[k, r]
    yield sp.diff(loss, x[j, k]), sum_over("m", lambda m: sum_over("q", lambda q: a[m, j] * g[m, q] * b[k, q]))


@step()
def _linearised() -> Identities:
    r"""To first order a change of X moves each entry of Y by $\sum_{jk} \frac{\partial y_{il}}{\partial x_{jk}}
    dx_{jk}$, and f by the sum of what each of those moves it by: the rate of $x_{jk}$ is $\sum_{il} \frac{\partial
    f}{\partial y_{il}} \frac{\partial y_{il}}{\partial x_{jk}}$, for any function of any sizes; and so, link by link,
    through any number of layers.
    """
    # D holds ∂y_il / ∂x_jk, and G the derivatives of f; then one more link E, from X to weights W.
    g, d, e, dx, dw, (j, k, r) = vector("G"), vector("D"), vector("E"), vector("dX"), vector("dW"), index("j k r")

    def moved(i: Any, l: Any) -> Any:
        return sum_over("m", lambda a: sum_over("n", lambda b: d[i, l, a, b] * dx[a, b]))

    def rate(a: Any, b: Any) -> Any:
        return sum_over("p", lambda i: sum_over("q", lambda l: g[i, l] * d[i, l, a, b]))

    total = sum_over("p", lambda i: sum_over("q", lambda l: g[i, l] * moved(i, l)))
    yield sp.diff(total, dx[j, k]), rate(j, k)
    chain = sum_over("m", lambda a: sum_over("n", lambda b: rate(a, b) * sum_over("s", lambda c: e[a, b, c] * dw[c])))
    yield sp.diff(chain, dw[r]), sum_over("m", lambda a: sum_over("n", lambda b: rate(a, b) * e[a, b, r]))


@step("entries", scope=Scope.ENUMERATED, detail="one function, 2 × 2")
def _entries_of_y() -> Identities:
    r"""The sum is over the entries of Y: $\frac{\partial f}{\partial x_{jk}} = \sum_{il} \frac{\partial f}{\partial
    y_{il}} \frac{\partial y_{il}}{\partial x_{jk}}$. Here for $Y = X X$ and $f = y_{11}^2 y_{22} + e^{y_{12} y_{21}}$.
    """
    # f(Y) = y_11² y_22 + e^{y_12 y_21} of Y = X X, differentiated at once and through Y.
    x, y = (sp.Matrix(2, 2, sp.symbols(f"{name}_1:5", real=True)) for name in "xy")
    f = y[0] ** 2 * y[3] + sp.exp(y[1] * y[2])
    inserted = dict(zip(y, x * x, strict=True))
    for e in x:
        through = sum(sp.diff(f, v).subs(inserted) * sp.diff(inserted[v], e) for v in y)
        yield sp.diff(f.subs(inserted), e), through


def _matrices(*shapes: tuple[int, int]) -> list[Any]:
    return [
        sp.Matrix(m, n, sp.symbols(f"{name}_1:{m * n + 1}", real=True))
        for name, (m, n) in zip("axb", shapes, strict=True)
    ]


@step("formula", scope=Scope.ENUMERATED, detail="three shapes up to 3 × 3")
def _traces() -> Identities:
    """The formula is the trace of the product."""
    # tr(A (X B)) by the formula, against SymPy's trace of the product.
    for shapes in (((1, 2), (2, 2), (2, 1)), ((2, 3), (3, 1), (1, 2)), ((3, 2), (2, 2), (2, 3))):
        a, x, b = _matrices(*shapes)
        xp = TowerArithmetic()
        yield trace_of_product(xp, *(xp.asarray(m.tolist()) for m in (a, x * b))).value[()], (a * x * b).trace()


@step("any-length")
def _any_trace() -> Identities:
    """The formula computes the sum of the diagonal of A B, for all sizes."""
    xp, m, n = AnyLength(), dimension("m"), dimension("n")
    a, b = vector("a"), vector("b")
    trace = computed(trace_of_product, xp, xp.array("a", m, n), xp.array("b", n, m))
    yield trace.then(entry()), sum_over(m, lambda i: sum_over(n, lambda j: a[i, j] * b[j, i]))


@step("formula", scope=Scope.ENUMERATED, detail="three triples of shapes up to 3")
def _products() -> Identities:
    """Both sides agree with the product, and with SymPy's own Kronecker product."""
    for shapes in (((1, 2), (2, 2), (2, 1)), ((2, 3), (3, 1), (1, 2)), ((2, 1), (1, 2), (2, 3))):
        matrices = _matrices(*shapes)
        xp = TowerArithmetic()
        lifted = [xp.asarray(m.tolist()) for m in matrices]
        a, x, b = matrices
        yield from entrywise(vec_of_product(xp, *lifted), list((a * x * b).vec()))
        yield from entrywise(vec(xp, sandwich(xp, *lifted)), list(sp.kronecker_product(b.T, a) * x.vec()))


@step("any-length")
def _any_product() -> Identities:
    """Entry i of column j is that of the product A X B, for all sizes."""
    xp, (i, j) = AnyLength(), index("i j")
    m, n, p, q = map(dimension, "mnpq")
    a, x, b = vector("a"), vector("x"), vector("b")
    product = computed(vec_of_product, xp, xp.array("a", m, n), xp.array("x", n, p), xp.array("b", p, q))
    printed = sum_over(n, lambda k: sum_over(p, lambda l: a[i, k] * x[k, l] * b[l, j]))
    yield product.then(entry(place(j, i, m))), printed


_any_trace_vjp = vjp_step(
    lambda: pullbacks(trace_of_product, trace_of_product_vjp, {"a": "m n", "b": "n m"}), "_any_trace_vjp"
)


_any_sandwich_vjp = vjp_step(
    lambda: pullbacks(sandwich, sandwich_vjp, {"a": "m n", "x": "n p", "b": "p q"}), "_any_sandwich_vjp"
)


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    m, n, p, q = rng.integers(1, 5, size=4)
    return {"a": rng.normal(size=(m, n)), "x": rng.normal(size=(n, p)), "b": rng.normal(size=(p, q))}


def _sample_of_two(rng: np.random.Generator) -> dict[str, Any]:
    m, n = rng.integers(1, 5, size=2)
    return {"a": rng.normal(size=(m, n)), "b": rng.normal(size=(n, m))}


_CONFORM = Assumption(
    "the matrices can be multiplied",
    lambda a: a["a"].shape[1] == a["x"].shape[0] and a["x"].shape[1] == a["b"].shape[0],
)
_SYMBOLS = (
    Symbol("A", r"\mathbb{R}^{m \times n}", "a matrix"),
    Symbol("X", r"\mathbb{R}^{n \times p}", "a matrix"),
    Symbol("B", r"\mathbb{R}^{p \times q}", "a matrix"),
    Symbol(r"\text{vec}(X)", r"\mathbb{R}^{n p}", "the columns of X below one another"),
)

EQUATIONS = (
    Equation(
        slug="trace-vec",
        number=None,
        title="Trace and vec",
        statement=r"\text{tr}(AB) = \text{vec}(A^T)^T \text{vec}(B)",
        sources=(Source("000", "B.2", 580), Source("001", "B.2", 772)),
        symbols=(
            Symbol("A", r"\mathbb{R}^{m \times n}", "a matrix"),
            Symbol("B", r"\mathbb{R}^{n \times m}", "a matrix"),
        ),
        assumptions=(Assumption("the product is square", lambda a: a["a"].shape == a["b"].shape[::-1]),),
        sample=_sample_of_two,
        formula=trace_of_product,
        vjp=trace_of_product_vjp,
        steps=(_trace, _traces, _any_trace, _any_trace_vjp),
    ),
    Equation(
        slug="kronecker",
        number=None,
        title="Vec of a product",
        statement=r"\text{vec}(AXB) = (B^T \otimes A)\text{vec}(X)",
        sources=(Source("000", "B.2", 582), Source("001", "B.2", 773)),
        symbols=_SYMBOLS,
        assumptions=(_CONFORM,),
        sample=_sample,
        formula=vec_of_product,
        steps=(_kronecker, _products, _any_product),
    ),
    Equation(
        slug="matrix-chain-rule",
        number=None,
        title="The chain rule for matrices",
        statement=r"\frac{\partial f}{\partial X} = \sum_Y \frac{\partial f}{\partial Y} \frac{\partial Y}{\partial X}",
        sources=(Source("000", "B.2", 584), Source("001", "B.2", 774), Source("002", "2.2.3", 385)),
        symbols=(
            *_SYMBOLS,
            Symbol("Y", r"\mathbb{R}^{m \times q}", "a function of X", "the sum runs over its entries"),
            Symbol("f", r"\mathbb{R}", "a function of Y"),
        ),
        assumptions=(_CONFORM,),
        sample=_sample,
        formula=sandwich,
        vjp=sandwich_vjp,
        steps=(_linearised, _entries_of_y, _sandwich, _any_sandwich_vjp),
    ),
)
