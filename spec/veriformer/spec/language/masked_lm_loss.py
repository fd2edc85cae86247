"""The masked language model's objective (document 003, section 8)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec import costs
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import AnyLength, entry, whole_numbers
from veriformer.spec.proofs.indexed import delta, dimension, index, sum_over, symbolic_sum, vector, whole
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step
from veriformer.spec.scores.cross_entropy import cross_entropy, cross_entropy_vjp
from veriformer.spec.scores.cross_entropy_derivation import log_probability


def masked_lm_loss(xp: Any, logits: Any, labels: NDArray[np.int64], *, ignore_index: int = -100) -> Any:
    """−(1/M) Σ_{i masked} log P(x_i | what is visible), over the M labels that are not ignored; 0 when there are none.

    logits [..., V] at a position score labels [...] at that position: nothing is shifted.
    """
    return cross_entropy(xp, logits, labels, ignore_index=ignore_index)


def masked_lm_loss_vjp(xp: Any, logits: Any, labels: NDArray[np.int64], g: Any, *, ignore_index: int = -100) -> Any:
    """d logits = g (p − y) / M at masked positions, 0 elsewhere."""
    return cross_entropy_vjp(xp, logits, labels, g, ignore_index=ignore_index)[0]


@step()
def _mean() -> Identities:
    """The statement sums, what is computed is the mean, M times less. One more position that is masked takes its part
    in the mean, and one that is not leaves it as it is, for any n.
    """
    # m_i is 1 at masked positions and 0 elsewhere, l_i the loss there.
    m, loss, i, n = vector("m"), vector("l"), index("i"), dimension("n")
    count, mean = symbolic_sum(m[i], i, n), symbolic_sum(m[i] * loss[i], i, n) / symbolic_sum(m[i], i, n)
    longer = symbolic_sum(m[i] * loss[i], i, n + 1) / symbolic_sum(m[i], i, n + 1)
    yield longer, (count * mean + m[n + 1] * loss[n + 1]) / (count + m[n + 1])


@step()
def _visible_gets_nothing() -> Identities:
    r"""With $m_s = 1$ at masked positions and 0 elsewhere, $\partial \mathcal{L} / \partial z_{sk} = m_s (p_{sk} -
    y_{sk}) / \sum_i m_i$: logits of visible positions learn nothing, for any n and V.
    """
    m, z, (i, j, s, k) = vector("m"), vector("z"), index("i j s k")
    y, size, n = vector("y"), dimension("V"), dimension("n")
    row = sp.log(symbolic_sum(sp.exp(z[i, j]), j, size)) - symbolic_sum(y[i, j] * z[i, j], j, size)
    loss = symbolic_sum(m[i] * row, i, n) / symbolic_sum(m[i], i, n)
    p = sp.exp(z[s, k]) / symbolic_sum(sp.exp(z[s, j]), j, size)
    yield sp.diff(loss, z[s, k]), m[s] * (p - y[s, k]) / symbolic_sum(m[i], i, n)


@step()
def _any_length() -> Identities:
    """The formula computes the mean over masked positions, those with a label, for any length and vocabulary."""
    xp, n, size, x = AnyLength(), dimension("T"), dimension("V"), whole("x")
    loss = computed(masked_lm_loss, xp, xp.array("z", n, size), whole_numbers(x, n))

    def masked(t: Any) -> Any:
        return 1 - delta(x[t], -100)

    total = sum_over(n, lambda t: masked(t) * log_probability(t, x[t] + 1, size))
    yield loss.then(entry()), -total / sp.Max(1, sum_over(n, masked))


_any_vjp = vjp_step(
    lambda: pullbacks(masked_lm_loss, masked_lm_loss_vjp, {"z": "T V", "labels": whole_numbers(whole("y"), "T")})
)


@erratum(
    kind="imprecise",
    source=Source("003", "8, Encoder-Only", 611),
    printed=r"P(x_i | x_{\setminus i})",
    corrected=r"P(x_i | x_{\text{not masked}}) \text{, for the other masked tokens are hidden as well}",
)
def _all_but_itself() -> Evidence:
    # The first token is a fair coin, the second repeats it. Given the other each is certain; given neither, it is not.
    return Evidence(
        "two equal tokens, a fair coin, both masked: the least loss",
        sp.S.Zero,
        2 * sp.log(2),
        letters={"P": lambda x, seen: sp.Rational(1, 2), "x": [0, 1], "i": 1, "x_notmasked": ()},
        values=(sp.Rational(1, 2),),
    )


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    shape = (2, int(rng.integers(1, 5)))
    labels = np.where(rng.random(shape) < 0.5, rng.integers(0, 5, size=shape), -100)
    labels[0, 0] = 3
    return {"logits": rng.normal(size=(*shape, 5)), "labels": labels}


EQUATIONS = (
    Equation(
        slug="masked-lm-loss",
        number=None,
        title="Masked language modelling",
        statement=r"\mathcal{L} = -\sum_{i \in \text{masked}} \log P(x_i | x_{\setminus i})",
        sources=(Source("003", "8, Encoder-Only", 611),),
        symbols=(
            Symbol(r"x_{\setminus i}", r"\{0, \dots, V-1\}^{n-1}", "as printed, all tokens but the i-th"),
            Symbol("M", r"\mathbb{N}", "number of masked positions"),
        ),
        assumptions=(
            Assumption("at least one position is masked", lambda a: bool((a["labels"] != -100).any())),
            Assumption("labels are tokens", lambda a: bool((a["labels"] < a["logits"].shape[-1]).all())),
        ),
        sample=_sample,
        formula=masked_lm_loss,
        vjp=masked_lm_loss_vjp,
        steps=(_mean, _visible_gets_nothing, _any_length, _any_vjp),
        costs=costs.lazily("cross_entropy"),
        errata=(_all_but_itself,),
    ),
)
