"""Warming β₂ up: averages whose β changes from step to step (documents 000 and 001, section 9.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.optimization.averages import average
from veriformer.spec.proofs.indexed import positive, real


def warming_average(xp: Any, values: Any, betas: Sequence[Any]) -> Any:
    """m_t / (1 − β_1 β_2 ⋯ β_t) over values [t, …], each averaged in with a β of its own; t ≥ 1, m_0 = 0.

    With all β equal this is the bias-corrected exponential average.
    """
    m = xp.asarray(np.zeros(values.shape[1:]))
    product = xp.asarray(1)
    for i, beta in enumerate(betas):
        m = average(xp, m, values[i], beta)
        product = product * beta
    return m / (1 - product)


@step()
def _weights_sum() -> Identities:
    r"""Whatever the β: one more value turns what is missing from the weights' sum, $1 - S$, into $\beta (1 - S)$. So,
    from $S = 0$ and by induction, $1 - S_t = \beta_1 \beta_2 \cdots \beta_t$.
    """
    # S is the sum of the weights so far, P the product of the β so far.
    s, p, beta = real("S P beta")
    xp = Symbolic()
    after = average(xp, xp.asarray(s), xp.asarray(1), beta).value[()]
    yield 1 - after, beta * (1 - s)
    yield (1 - after) - beta * p, beta * ((1 - s) - p)


@step(scope=Scope.ENUMERATED, detail="t ≤ 4, any β")
def _unbiased() -> Identities:
    r"""Hence dividing by $1 - \prod_i \beta_i$ corrects the bias."""
    xp, mu, betas = Symbolic(), real("mu"), sp.symbols("beta_1:5", positive=True)
    for t in range(1, 5):
        yield warming_average(xp, xp.asarray([mu] * t), betas[:t]).value[()], mu


@step(scope=Scope.ENUMERATED, detail="t = 2, any β")
def _plain_correction() -> Identities:
    r"""Dividing by $1 - \beta_t^t$, as for a constant β, does not: while β grows it gives a mean too large, at $t = 2$
    by $\beta_2 (\beta_2 - \beta_1) / (1 - \beta_2^2)$.
    """
    # What dividing by 1 − β_t^t, as for a constant β, makes of a common mean at t = 2.
    first, last, mu = positive("beta_1 beta_2 mu")
    xp = Symbolic()
    m = average(xp, average(xp, xp.asarray(0), xp.asarray(mu), first), xp.asarray(mu), last).value[()]
    yield m / (1 - last**2), mu * (1 + last * (last - first) / (1 - last**2))


@step(scope=Scope.ENUMERATED, detail="t = 2 and 3, any two β")
def _first_gradient() -> Identities:
    r"""The first gradient, the wildest, weighs $\beta^{t-1} / (1 + \beta + \cdots + \beta^{t-1})$ in
    $\hat{\mathbf{v}}_t$: less for a smaller β. A start at 0.99 forgets it ten times as fast as 0.999.
    """
    # What the first of t values weighs, after correction: more for the larger β.
    low, gap = positive("beta Delta")
    high = low + gap
    for t in (2, 3):
        weights = [(1 - beta) * beta ** (t - 1) / (1 - beta**t) for beta in (low, high)]
        sums = [sum(beta**k for k in range(t)) for beta in (low, high)]
        yield weights[0], low ** (t - 1) / sums[0]
        more = sum((high ** (t - 1 - k) - low ** (t - 1 - k)) * (low * high) ** k for k in range(t))
        yield weights[1] - weights[0], more / (sums[0] * sums[1])


@erratum(
    kind="wrong",
    source=Source("000", "9.2", 147),
    printed=r"\text{Start with high } \beta_2 \text{ (e.g., 0.99) and gradually decrease to final value "
    r"(e.g., 0.999)}",
    corrected=r"\text{start with a low } \beta_2 \text{ (e.g., 0.99) and gradually increase it to 0.999}",
)
def _decrease_upwards() -> Evidence:
    start, end = sp.Rational("0.99"), sp.Rational("0.999")
    return Evidence(
        "from 0.99 to 0.999: the sign of the change, for a decrease",
        -1,
        sp.sign(end - start),
        letters={"beta_2": start},
    )


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    t = int(rng.integers(1, 6))
    return {"values": rng.normal(size=(t, 2)), "betas": sorted(rng.uniform(0.9, 0.999, size=t).tolist())}


EQUATIONS = (
    Equation(
        slug="beta2-warmup",
        number=None,
        title="Warming up β₂",
        statement=r"\beta_2^{\text{initial}} \approx 0.99, \quad \beta_2^{\text{final}} \approx 0.999",
        sources=(Source("000", "9.2", 147), Source("001", "9.2", 174)),
        symbols=(
            Symbol(r"\beta_{2,t}", "[0, 1)", "how much of the average is kept at step t"),
            Symbol(r"\mathbf{v}_t", r"\mathbb{R}^n", "the average", "zero before the first step"),
        ),
        assumptions=(
            Assumption("every β is at least 0 and below 1", lambda a: all(0 <= beta < 1 for beta in a["betas"])),
            Assumption("there is a β for each value", lambda a: len(a["betas"]) == len(a["values"]) > 0),
        ),
        sample=_sample,
        formula=warming_average,
        steps=(_weights_sum, _unbiased, _plain_correction, _first_gradient),
        errata=(_decrease_upwards,),
    ),
)
