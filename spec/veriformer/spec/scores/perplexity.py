"""Perplexity (equation 41)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Identities, Source, Symbol, step
from veriformer.spec.proofs.any_length import AnyLength, entry, whole_numbers
from veriformer.spec.proofs.indexed import delta, dimension, index, sum_over, symbolic_sum, vector, whole
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step
from veriformer.spec.scores.cross_entropy import cross_entropy, cross_entropy_vjp
from veriformer.spec.scores.cross_entropy_derivation import log_probability


def perplexity(xp: Any, logits: Any, target: Any, *, ignore_index: int = -100) -> Any:
    """PPL = exp(−(1/T) Σ_t log P(x_t | x_{<t})) over the T targets that are not ignored; 1 when there are none.

    logits [..., V] at position t score target [...] at position t: nothing is shifted here.
    """
    return xp.exp(cross_entropy(xp, logits, target, ignore_index=ignore_index))


def perplexity_vjp(xp: Any, logits: Any, target: Any, g: Any, *, ignore_index: int = -100) -> Any:
    """d logits = g · PPL · (p − y) / T at every counted position."""
    ppl = perplexity(xp, logits, target, ignore_index=ignore_index)
    return cross_entropy_vjp(xp, logits, target, g * ppl, ignore_index=ignore_index)[0]


@step()
def _uniform() -> Identities:
    """A model that spreads the probability evenly over V tokens has perplexity V, for a text of any length."""
    t, n, size = index("t"), dimension("T"), dimension("V")
    yield sp.exp(-symbolic_sum(sp.log(1 / size), t, n) / n), size


@step()
def _windows() -> Identities:
    r"""$\log \mathrm{PPL}$ of a longer text is the mean of its parts' weighted by their lengths (here n tokens and one
    more): averaging windows without the weights is another number.
    """
    x, t, n = vector("x"), index("t"), dimension("T")
    shorter, longer = symbolic_sum(x[t], t, n), symbolic_sum(x[t], t, n + 1)
    yield longer / (n + 1), (n * (shorter / n) + 1 * x[n + 1]) / (n + 1)


@step()
def _any_length() -> Identities:
    r"""The formula computes the statement, for a text and a vocabulary of any size; ignored tokens ($x_t = -100$) count
    neither in the sum nor in T.
    """
    xp, n, size = AnyLength(), dimension("T"), dimension("V")
    z, x, some = xp.array("z", n, size), whole("x", nonnegative=True), whole("x")
    total = sum_over(n, lambda t: log_probability(t, x[t] + 1, size))
    yield computed(perplexity, xp, z, whole_numbers(x, n)).then(entry()), sp.exp(-total / n)

    def counted(t: Any) -> Any:
        return 1 - delta(some[t], -100)

    total = sum_over(n, lambda t: counted(t) * log_probability(t, some[t] + 1, size))
    least = sp.Max(sum_over(n, counted), 1)
    yield computed(perplexity, xp, z, whole_numbers(some, n)).then(entry()), sp.exp(-total / least)


_any_vjp = vjp_step(
    lambda: pullbacks(
        perplexity, perplexity_vjp, {"z": "T V", "target": whole_numbers(whole("x", nonnegative=True), "T")}
    )
)


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    shape = (2, int(rng.integers(1, 5)))
    return {"logits": rng.normal(size=(*shape, 5)), "target": rng.integers(0, 5, size=shape)}


EQUATIONS = (
    Equation(
        slug="perplexity",
        number="41",
        title="Perplexity",
        statement=r"\mathrm{PPL} = \exp\left(-\frac{1}{T} \sum_{t=1}^{T} \log P\left(x_t \mid x_{<t}\right) \right)",
        sources=(Source("002", "8.2", 989), Source("004", "2.5", 211)),
        symbols=(
            Symbol("T", r"\mathbb{N}", "number of scored tokens", "at least 1"),
            Symbol("x_t", r"\{0, \dots, V-1\}", "the token at position t"),
        ),
        assumptions=(
            Assumption("at least one token is scored", lambda a: a["target"].size > 0),
            Assumption("every logit is a real number", lambda a: bool(np.isfinite(a["logits"]).all())),
        ),
        sample=_sample,
        formula=perplexity,
        vjp=perplexity_vjp,
        steps=(_uniform, _windows, _any_length, _any_vjp),
        costs=costs.lazily("perplexity"),
    ),
)
