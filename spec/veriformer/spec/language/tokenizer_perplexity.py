"""Perplexity depends on the tokenizer, the probability of a text does not (documents 000 and 001, section 11.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec import costs
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import AnyLength, entry, whole_numbers
from veriformer.spec.proofs.indexed import dimension, index, positive, sum_over, symbolic_sum, vector, whole
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.published import holds
from veriformer.spec.proofs.pullbacks import pullbacks
from veriformer.spec.scores.cross_entropy import cross_entropy, cross_entropy_vjp
from veriformer.spec.scores.cross_entropy_derivation import log_probability


def perplexity_per_unit(xp: Any, logits: Any, target: NDArray[np.int64], units: int) -> Any:
    """exp(−(1/U) Σ_t log P(x_t | x_{<t})): per character or byte, when the text has U of them.

    logits [..., V], target [...]; with U the number of tokens it is the perplexity (41).
    """
    return xp.exp(cross_entropy(xp, logits, target, reduction="sum") / units)


def perplexity_per_unit_vjp(xp: Any, logits: Any, target: NDArray[np.int64], units: int, g: Any) -> Any:
    """d logits = g · (perplexity per unit) · (p − y) / U."""
    share = g * perplexity_per_unit(xp, logits, target, units) / units
    return cross_entropy_vjp(xp, logits, target, share, reduction="sum")[0]


@step()
def _power() -> Identities:
    r"""Two models that give a text the same probability, in n tokens and in m, have $\mathrm{PPL}_m =
    \mathrm{PPL}_n^{n/m}$: fewer tokens, higher perplexity, and no difference in quality.
    """
    p, n, m = positive("P n m")
    by_n = sp.Symbol("q", positive=True)
    yield sp.exp(n / m * sp.log(by_n)).subs(by_n, p ** (-1 / n)), sp.exp(-sp.log(p) / m)


@step()
def _merged() -> Identities:
    r"""Merging two tokens into one of probability ab leaves the perplexity per character as it is. Per token, $\log
    \mathrm{PPL}$ grows by $-\log P(\text{text}) / ((n + 1) (n + 2))$, for any n.
    """
    # The last two of n + 2 tokens become one, whose probability is the product of theirs.
    x, t, n, units = vector("x"), index("t"), dimension("n"), positive("U")
    a, b = positive("a b")
    fine, coarse = symbolic_sum(x[t], t, n) + sp.log(a) + sp.log(b), symbolic_sum(x[t], t, n) + sp.log(a * b)
    yield sp.exp(-fine / units), sp.exp(-coarse / units)
    yield -fine / (n + 2) + coarse / (n + 1), coarse / ((n + 1) * (n + 2))


_PIECES, _TEXT = ("hel", "lo", " wor", "ld"), "hello world"


@step(scope=Scope.ENUMERATED, detail="the printed example, with a probability of ours")
def _worked() -> Identities:
    """ "hello world" in 4 pieces and in 11 letters, which need 4 and 8 entries of a vocabulary: with $P = 2^{-44}$ the
    perplexity is 2048 and 16.
    """
    yield holds("".join(_PIECES) == _TEXT)
    yield computed(len, _PIECES), sp.Integer(4)
    yield computed(len, _TEXT), sp.Integer(11)
    yield computed(len, set(_PIECES)), sp.Integer(4)
    yield computed(len, set(_TEXT)), sp.Integer(8)
    text = sp.Rational(1, 2**44)
    yield sp.Pow(1 / text, sp.Rational(1, len(_PIECES)), evaluate=False), sp.Integer(2048)
    yield sp.Pow(1 / text, sp.Rational(1, len(_TEXT)), evaluate=False), sp.Integer(16)


@step()
def _any_length() -> Identities:
    """The formula computes $P^{-1/U}$, for texts and vocabularies of any size and any number of units."""
    xp, n, size, units = AnyLength(), dimension("T"), dimension("V"), dimension("U")
    x = whole("x", nonnegative=True)
    found = computed(perplexity_per_unit, xp, xp.array("z", n, size), whole_numbers(x, n), units)
    total = sum_over(n, lambda t: log_probability(t, x[t] + 1, size))
    yield found.then(entry()), sp.exp(-total / units)


@step()
def _any_vjp() -> Identities:
    """The vector-Jacobian product is the derivative that SymPy takes of the formula, for all sizes."""
    arguments = {"z": "T V", "target": whole_numbers(whole("x", nonnegative=True), "T"), "units": dimension("U")}
    yield from pullbacks(perplexity_per_unit, perplexity_per_unit_vjp, arguments)


@erratum(
    kind="imprecise",
    source=Source("000", "11.2", 403),
    printed=r"\text{PPL comparisons only valid with same tokenizer}",
    corrected=r"\text{and the same text; perplexities per character compare across tokenizers}",
)
def _comparable_per_character() -> Evidence:
    text = sp.Rational(1, 2**44)
    by_pieces, by_letters = [((1 / text) ** sp.Rational(1, n)) ** sp.Rational(n, len(_TEXT)) for n in (4, 11)]
    point = "11 letters of probability 2^-44, in 4 tokens and in 11: do the perplexities per letter differ"
    return Evidence(point, True, bool(by_pieces != by_letters))


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    n = int(rng.integers(1, 5))
    return {"logits": rng.normal(size=(n, 4)), "target": rng.integers(0, 4, size=n), "units": int(rng.integers(1, 12))}


EQUATIONS = (
    Equation(
        slug="tokenizer-perplexity",
        number=None,
        title="Perplexity and the tokenizer",
        statement=r"\mathrm{PPL} = P(\text{text})^{-1/n}, \quad n \text{ tokens}",
        sources=(Source("000", "11.2", 403), Source("001", "11.2", 542)),
        symbols=(
            Symbol("P", "(0, 1]", "the probability of the text"),
            Symbol("n, m", r"\mathbb{N}", "into how many tokens two tokenizers cut the text"),
            Symbol("U", r"\mathbb{N}", "how many characters, or bytes, the text has"),
        ),
        assumptions=(
            Assumption("the text is not empty", lambda a: a["target"].size > 0 and a["units"] > 0),
            Assumption("every logit is a real number", lambda a: bool(np.isfinite(a["logits"]).all())),
        ),
        sample=_sample,
        formula=perplexity_per_unit,
        vjp=perplexity_per_unit_vjp,
        steps=(_power, _merged, _worked, _any_length, _any_vjp),
        costs=costs.lazily("perplexity"),
        errata=(_comparable_per_character,),
    ),
)
