"""Temperature (documents 000 and 001, sections 11.2 and 14.4, and 003, section 12)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec.arithmetic.any_size import AnySize
from veriformer.spec.arithmetic.exact_inputs import nowhere
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import lazily
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Source, Symbol, erratum, step
from veriformer.spec.generation.choices import exact_values
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, index, positive, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step


def temperature_scale(xp: Any, logits: Any, temperature: float) -> Any:
    """softmax(z / T) over the last axis for T > 0, as e^{(z − m) / T} / Σ e^{(z_j − m) / T} with m = max z.

    The maximum is taken before the division, so that the largest exponent is exactly 0 for the smallest T.
    """
    exponent = (logits - xp.max(logits, axis=-1, keepdims=True)) / temperature
    e = xp.exp(xp.where(_vanishing(exponent), -math.inf, exponent))
    return e / xp.sum(e, axis=-1, keepdims=True)


def temperature_scale_vjp(xp: Any, logits: Any, temperature: float, g: Any) -> Any:
    """d logits = p ⊙ (g − Σ_j p_j g_j) / T."""
    p = temperature_scale(xp, logits, temperature)
    return p * (g - xp.sum(p * g, axis=-1, keepdims=True)) / temperature


def _vanishing(exponent: Any) -> NDArray[np.bool_] | AnySize:
    """Where e^x is 0 in every format, however the quotient x was rounded or has overflowed; a symbol's never is."""
    if isinstance(exponent.value, AnySize):
        return nowhere(exponent.value)
    below = np.less(exact_values(exponent), -1e4, dtype=object)
    return np.asarray(np.equal(below, True, dtype=object), dtype=bool)


def _weight(i: Any, s: Any) -> Any:
    """softmax(s z)_i, where s = 1 / T."""
    z, j = vector("z"), sp.Dummy("j", integer=True)
    return sp.exp(s * z[i]) / symbolic_sum(sp.exp(s * z[j]), j, dimension("n"))


def _mean(s: Any) -> Any:
    j = sp.Dummy("j", integer=True)
    return symbolic_sum(_weight(j, s) * vector("z")[j], j, dimension("n"))


@step()
def _ratio() -> Identities:
    r"""$p_i / p_j = e^{(z_i - z_j) / T}$, and $T \log(p_i / p_j) = z_i - z_j$ whatever T: the order of the tokens, the
    most probable one and so the accuracy do not depend on the temperature.
    """
    z, (i, j), t = vector("z"), index("i j"), positive("T")
    yield _weight(i, 1 / t) / _weight(j, 1 / t), sp.exp((z[i] - z[j]) / t)
    yield sp.log(_weight(i, 1 / t) / _weight(j, 1 / t)) * t, z[i] - z[j]


@step()
def _confidence() -> Identities:
    r"""$d p_i / d s = p_i (z_i - \sum_j p_j z_j)$ with $s = 1/T$: the largest logit is above the mean, so its
    probability falls as T rises, unless all logits are equal.
    """
    i, s = index("i"), positive("s")
    yield sp.diff(_weight(i, s), s), _weight(i, s) * (vector("z")[i] - _mean(s))


@step()
def _entropy() -> Identities:
    r"""With $H = \log \sum_j e^{s z_j} - s \sum_j p_j z_j$, $d H / d s = -s (\sum_j p_j z_j^2 - (\sum_j p_j z_j)^2)$,
    minus s times a variance: entropy never falls as T rises. Above 1 the distribution is smoother, below 1 sharper, for
    any n.
    """
    z, j, n, s = vector("z"), index("j"), dimension("n"), positive("s")
    entropy = sp.log(symbolic_sum(sp.exp(s * z[j]), j, n)) - s * _mean(s)
    square = symbolic_sum(_weight(j, s) * z[j] ** 2, j, n)
    yield sp.diff(entropy, s), -s * (square - _mean(s) ** 2)


@step()
def _cold() -> Identities:
    r"""$1 / p_i = \sum_j e^{-(z_i - z_j) / T}$. For a largest score the terms of those that share it are 1, and the
    others, with a gap, go to 0 with T: k scores that share the maximum get $1 / k$ each, and so nothing is left for the
    rest.
    """
    z, (i, j), t, gap = vector("z"), index("i j"), positive("T"), positive("a")
    yield 1 / _weight(i, 1 / t), symbolic_sum(sp.exp(-(z[i] - z[j]) / t), j, dimension("n"))
    yield computed(sp.limit, sp.exp(-gap / t), t, 0, "+"), sp.S.Zero


@step()
def _hot() -> Identities:
    """As T goes to infinity, s goes to 0, where all weights are $1 / n$: no logit counts."""
    i, s, t = index("i"), positive("s"), positive("T")
    yield _weight(i, s).subs(s, 0), 1 / dimension("n")
    a, b = positive("a b")
    yield computed(sp.limit, 1 / (1 + sp.exp(-a / t) + sp.exp(-b / t)), t, sp.oo), sp.Rational(1, 3)


@step()
def _any_length() -> Identities:
    """The formula computes the statement, for all sizes."""
    xp, i, t = AnyLength(), index("i"), positive("T")
    yield computed(temperature_scale, xp, xp.array("z", dimension("n")), t).then(entry(i)), _weight(i, 1 / t)


_any_vjp = vjp_step(lambda: pullbacks(temperature_scale, temperature_scale_vjp, {"z": "n", "t": positive("T")}))


@erratum(
    kind="imprecise",
    source=Source("003", "12, Mathematical Formulation", 1465),
    printed=r"\tau \to 0 : \text{Deterministic (argmax) selection}",
    corrected=r"\tau \to 0 : \text{an even choice among all that share the maximum}",
)
def _ties_stay_random() -> Evidence:
    t = positive("T")
    limit = sp.limit(1 / (1 + sp.exp(0 / t)), t, 0, "+")
    return Evidence("logits (1, 1): the probability of the first as T goes to 0", sp.S.One, limit, letters={"tau": 0})


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    n = int(rng.integers(1, 6))
    return {"logits": rng.normal(size=(2, n)) * 3, "temperature": float(rng.uniform(0.1, 4))}


EQUATIONS = (
    Equation(
        slug="temperature",
        number=None,
        title="Temperature",
        statement=r"P_{\text{cal}}(y|x) = \text{softmax}(\mathbf{z}/T)",
        sources=(
            Source("000", "11.2", 399),
            Source("000", "14.4", 467),
            Source("001", "11.2", 528),
            Source("001", "14.4", 631),
            Source("003", "12, Mathematical Formulation", 1452),
        ),
        symbols=(
            Symbol(r"\mathbf{z}", r"\mathbb{R}^n", "logits", "finite"),
            Symbol("T", r"\mathbb{R}_{> 0}", "the temperature, also called τ"),
            Symbol("s", r"\mathbb{R}_{> 0}", "its inverse 1 / T"),
        ),
        assumptions=(
            Assumption("the temperature is positive", lambda a: a["temperature"] > 0),
            Assumption("every logit is a real number", lambda a: bool(np.isfinite(a["logits"]).all())),
        ),
        sample=_sample,
        formula=temperature_scale,
        vjp=temperature_scale_vjp,
        steps=(_ratio, _confidence, _entropy, _cold, _hot, _any_length, _any_vjp),
        costs=lazily("temperature_scale"),
        errata=(_ties_stay_random,),
    ),
)
