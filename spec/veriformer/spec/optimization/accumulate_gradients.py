"""Gradient accumulation: one large batch in parts of any size (documents 000 and 001, section 9.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, product
from typing import Any

import numpy as np

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import optimizer_costs
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.optimization.gradient_descent import gradient_descent
from veriformer.spec.proofs.indexed import delta, dimension, index, positive, real, symbolic_sum, vector


def accumulate_gradients(xp: Any, sums: Sequence[Sequence[Any]], counts: Sequence[Any]) -> list[Any]:
    """Σ_k ∇S_k / Σ_k n_k for each parameter: the gradient of the mean loss over all tokens at once.

    sums[k] holds, for each parameter, the gradient of the sum S_k of the losses of micro-batch k, of which there is at
    least one; counts[k] is the number n_k of its tokens, which may be 0. Over no token at all the result is zero.
    """
    tokens = sum(counts) or 1
    return [xp.sum(xp.stack(parts), axis=0) / tokens for parts in zip(*sums, strict=True)]


@step(detail="squared errors of one parameter")
def _linear() -> Identities:
    """Differentiation is linear: the gradient of a mean of losses is the mean of their gradients."""
    # The derivative of a sum of losses, here of squares of any number of errors x_i θ − y_i.
    n, i, theta = dimension("n"), index("i"), real("theta")
    error = vector("x")[i] * theta - vector("y")[i]
    yield sp.diff(symbolic_sum(error**2, i, n) / n, theta), symbolic_sum(2 * error * vector("x")[i], i, n) / n


def _mean(n: Any) -> Any:
    i = sp.Dummy("i", integer=True)
    return symbolic_sum(vector("g")[i], i, n) / n


@step()
def _one_token_more() -> Identities:
    """The sum of the gradients of n tokens, one more added, and divided by $n + 1$, is the mean over $n + 1$ tokens. So
    by induction sums and counts may be gathered in parts of any sizes, in any order.
    """
    n = dimension("n")
    yield (n * _mean(n) + vector("g")[n + 1]) / (n + 1), _mean(n + 1)


@step(detail="two micro-batches of any sizes")
def _weighted() -> Identities:
    r"""Each micro-batch's mean counts by its share $n_k / \sum_j n_j$ of the tokens."""
    (a, b), (n, m) = real("a b"), positive("n m")
    (g,) = accumulate_gradients(Symbolic(), [[n * a], [m * b]], [n, m])
    yield g.value[()], n / (n + m) * a + m / (n + m) * b


@step(detail="two micro-batches of any sizes")
def _mean_of_means() -> Identities:
    r"""The plain mean of the means of two micro-batches is off by $\frac{m - n}{2 (n + m)}$ times the difference of the
    means: right only for equal sizes, or equal means.
    """
    (a, b), (n, m) = real("a b"), positive("n m")
    yield (a / n + b / m) / 2 - (a + b) / (n + m), (m - n) * (a / n - b / m) / (2 * (n + m))


def _splits(n: int) -> Iterator[tuple[int, ...]]:
    """Every way to cut n tokens into up to three micro-batches in order, empty ones among them."""
    for parts in (1, 2, 3):
        yield from (sizes for sizes in product(range(n + 1), repeat=parts) if sum(sizes) == n)


@step(scope=Scope.ENUMERATED, detail="1, 2 and 4 tokens in up to 3 parts")
def _every_split() -> Identities:
    """The formula gives the mean over all tokens for every ragged split, empty parts included."""
    # Tokens whose gradients are e_i x, as those of a linear layer with one input x.
    xp, x = Symbolic(), real("x")
    for n in (1, 2, 4):
        errors = sp.symbols(f"e_1:{n + 1}", real=True)
        for sizes in _splits(n):
            starts = [end - size for end, size in zip(accumulate(sizes), sizes, strict=True)]
            sums = [[sum(e * x for e in errors[a : a + k])] for a, k in zip(starts, sizes, strict=True)]
            yield accumulate_gradients(xp, sums, sizes)[0].value[()], x * sum(errors) / n


@step()
def _noise() -> Identities:
    r"""Accumulation simulates the larger batch in its noise too: the mean of n independent gradients of variance
    $\sigma^2$ has variance $\sigma^2 / n$, in however many parts it is taken.
    """
    n, (i, j), sigma = dimension("n"), index("i j"), positive("sigma")
    yield symbolic_sum(symbolic_sum(delta(i, j) * sigma**2, i, n), j, n) / n**2, sigma**2 / n


@step(detail="quadratic losses, one parameter")
def _two_steps() -> Identities:
    r"""Two steps of rate $\eta$, one per micro-batch, differ from one accumulated step of rate $2 \eta$ by a term of
    order $\eta^2$ only (exactly this on quadratic losses): that is why the rate is raised with the batch.
    """
    # Two micro-batches with losses λ θ² / 2 − b θ each: one after the other, or both in one step at twice the rate.
    theta, (b, c), eta, (lam, mu) = real("theta"), real("b c"), positive("eta"), positive("lambda mu")
    xp = Symbolic()
    x = xp.asarray(theta)
    (after,) = gradient_descent(xp, [x], [x * lam - b], lr=eta)
    (after,) = gradient_descent(xp, [after], [after * mu - c], lr=eta)
    (at_once,) = gradient_descent(xp, [x], [(x * lam - b + x * mu - c) / 2], lr=2 * eta)
    yield after.value[()] - at_once.value[()], eta**2 * mu * (lam * theta - b)


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    counts = [int(n) for n in rng.integers(0, 5, size=int(rng.integers(1, 4)))]
    sums = [[n * rng.normal(size=s) for s in ((2, 3), (4,))] for n in counts]
    return {"sums": sums, "counts": counts}


EQUATIONS = (
    Equation(
        slug="gradient-accumulation",
        number=None,
        title="Gradient accumulation",
        statement=r"\text{Simulate larger batch sizes: } \mathbf{g} = \frac{\sum_k \nabla S_k}{\sum_k n_k}",
        sources=(Source("000", "9.2", 149), Source("001", "9.2", 183)),
        symbols=(
            Symbol("S_k", r"\mathbb{R}", "the sum of the losses of the tokens of micro-batch k"),
            Symbol("n_k", r"\mathbb{N}_0", "the number of these tokens"),
            Symbol(r"\mathbf{g}", r"\mathbb{R}^n", "the accumulated gradient"),
        ),
        assumptions=(
            Assumption("there is a micro-batch", lambda a: len(a["counts"]) == len(a["sums"]) > 0),
            Assumption("no count is negative", lambda a: min(a["counts"]) >= 0),
            Assumption(
                "the loss is a sum over tokens: without tokens it has no gradient",
                lambda a: all(n or not g.any() for n, part in zip(a["counts"], a["sums"], strict=True) for g in part),
            ),
        ),
        sample=_sample,
        formula=accumulate_gradients,
        steps=(_linear, _one_token_more, _weighted, _mean_of_means, _every_split, _noise, _two_steps),
        costs=optimizer_costs("accumulation"),
    ),
)
