"""RoPE beyond the length of training: linear and NTK scaling of its frequencies (document 002, section 6.3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic import Exact, Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import POSITIONS
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Source, Symbol, erratum, step
from veriformer.spec.positions.angles import frequencies
from veriformer.spec.positions.rope import rope, rope_vjp
from veriformer.spec.positions.rope_rotation import ASSUMPTIONS
from veriformer.spec.proofs.any_length import AnyLength, entry, place, whole_numbers
from veriformer.spec.proofs.complex_exponentials import as_exponentials
from veriformer.spec.proofs.indexed import dimension, index, positive, real, symbolic_sum, vector, whole
from veriformer.spec.proofs.provenance import computed

# In the proofs for all widths: d features, and e = d − 2, so that the last pair, the slowest, is pair e / 2.


def _theta(i: Any, more: Any = 0) -> Any:
    """θ_i = exp(−2i/d · (log b + more)), where `more` is the logarithm of what multiplies the base b."""
    return sp.exp(-2 * i / dimension("d") * (sp.log(positive("b")) + more))


def _ntk(i: Any) -> Any:
    """θ_i for the base b · s^(d / (d − 2))."""
    return _theta(i, dimension("d") / dimension("e") * sp.log(positive("s")))


@step()
def _base() -> Identities:
    r"""$\alpha^{-2i/d} \cdot 10000^{-2i/d} = (10000 \alpha)^{-2i/d}$: base scaling is another base."""
    i, d, b, alpha = index("i"), dimension("d"), positive("b"), positive("alpha")
    yield sp.exp(-2 * i / d * sp.log(alpha)) * _theta(i), sp.exp(-2 * i / d * sp.log(alpha * b))


@step()
def _any_length() -> Identities:
    r"""The features are turned by $\theta_i = \alpha^{-2i/d} \, 10000^{-2i/d}$ where the base is scaled, and by
    $\theta_i / s$ where positions are, for all sizes and any base.
    """
    xp, t, i, m = AnyLength(), index("t"), index("i"), dimension("m")
    b, alpha, s, x = positive("b"), positive("alpha"), positive("s"), vector("x")
    rows = xp.array("x", dimension("n"), 2 * m), whole_numbers(whole("p"), "n")
    power = -2 * (i - 1) / (2 * m)
    plain = sp.exp(power * sp.log(b))
    scaled = {"base": alpha * b}, sp.exp(power * sp.log(alpha)) * plain
    for options, theta in (scaled, ({"base": b, "scaling": ("linear", s)}, plain / s)):
        angle = whole("p")[t] * theta
        turned = x[t, place(i, 1, 2)] * sp.cos(angle) - x[t, place(i, 2, 2)] * sp.sin(angle)
        yield computed(rope, xp, *rows, **options).then(entry(t, place(i, 1, 2))), turned


@step()
def _base_at_the_end() -> Identities:
    r"""Scaling the base divides the lowest frequency, that of the last pair, by $\alpha^{(d-2)/d}$: not quite by
    $\alpha$.
    """
    d, e, log_alpha = dimension("d"), dimension("e"), sp.log(positive("alpha"))
    yield _theta(e / 2, log_alpha), _theta(e / 2) / sp.exp(e / d * log_alpha)


@step()
def _linear() -> Identities:
    """Linear scaling divides all frequencies, or all positions, by s: the offset $s m - s n$ looks as $m - n$ did in
    training. Neighbours come s times closer, also for the fastest pair.
    """
    i, (m, n), s, w = index("i"), real("m n"), positive("s"), vector("w")
    stretched = symbolic_sum(as_exponentials(sp.cos((s * m - s * n) * w[i] / s)), i, dimension("p"))
    yield stretched, symbolic_sum(as_exponentials(sp.cos((m - n) * w[i])), i, dimension("p"))


@step()
def _ntk_by_pair() -> Identities:
    r"""NTK scaling is base scaling with $\alpha = s^{d/(d-2)}$, which divides $\theta_i$ by $s^{2i/(d-2)}$: by one
    factor $s^{2/(d-2)}$ more from pair to pair.
    """
    i, e, log_s = index("i"), dimension("e"), sp.log(positive("s"))
    yield _ntk(i), _theta(i) / sp.exp(2 * i / e * log_s)
    yield _ntk(i + 1) / _theta(i + 1), _ntk(i) / _theta(i) / sp.exp(2 / e * log_s)


@step()
def _ntk_at_the_ends() -> Identities:
    r"""So the lowest frequency is scaled exactly as by linear scaling, $\theta'_i = \theta_i / s$ at $i = (d-2)/2$,
    while the highest is unchanged, $\theta'_0 = \theta_0$: far positions are interpolated, near ones are told apart as
    before.
    """
    yield _ntk(dimension("e") / 2), _theta(dimension("e") / 2) / positive("s")
    yield _ntk(0), _theta(0)


@step()
def _only_this_exponent() -> Identities:
    r"""This is what fixes the exponent: with $\alpha = e^x$ the lowest frequency is that of linear scaling times
    $e^{-\frac{d-2}{d}(x - \frac{d}{d-2} \log s)}$, which is 1 only for $\alpha = s^{d/(d-2)}$.
    """
    d, e, x, log_s = dimension("d"), dimension("e"), real("x"), sp.log(positive("s"))
    yield positive("s") * _theta(e / 2, x) / _theta(e / 2), sp.exp(-e / d * (x - d / e * log_s))


@erratum(
    kind="imprecise",
    source=Source("002", "6.3", 886),
    printed=r"\text{Increase base frequency}",
    corrected=r"\text{increase the base; for } \alpha > 1 \text{ every frequency but the first decreases}",
)
def _frequencies_fall() -> Evidence:
    plain, scaled = (frequencies(Exact(), 4, base=base).value[1] for base in (10**4, 2 * 10**4))
    return Evidence(
        "d = 4, α = 2: does the frequency of pair 1 increase", True, bool(scaled > plain), letters={"alpha": 2}
    )


@erratum(
    kind="imprecise",
    source=Source("002", "6.3", 888),
    printed=r"\text{Base scaling for modest extensions (2-4x), NTK for extreme length}",
    corrected=r"\text{NTK scaling is base scaling with } \alpha = s^{d/(d-2)} \text{: both reach equally "
    r"far}",
)
def _one_method() -> Evidence:
    ntk = frequencies(Symbolic(), 4, base=10**4, scaling=("ntk", 4)).value
    base = frequencies(Symbolic(), 4, base=16 * 10**4).value
    different = any(sp.simplify(x - y) != 0 for x, y in zip(ntk, base, strict=True))
    return Evidence(
        "d = 4, NTK scaling by 4 and base scaling by α = 16: do the frequencies differ",
        True,
        different,
        letters={"alpha": 16, "s": 4, "d": 4},
    )


@erratum(
    kind="imprecise",
    source=Source("002", "6.3", 887),
    printed=r"\text{NTK scaling: Interpolate frequencies}",
    corrected=r"\text{NTK scaling divides } \theta_i \text{ by } s^{2i/(d-2)} \text{: the slowest pair is "
    r"interpolated, the fastest not at all}",
)
def _not_interpolated() -> Evidence:
    ntk = frequencies(Symbolic(), 4, base=10**4, scaling=("ntk", 4)).value
    return Evidence(
        "d = 4, NTK scaling by 4: the fastest frequency, if positions were interpolated",
        "1/4",
        str(ntk[0]),
        letters={"theta": lambda i: ntk[i], "i": range(2), "s": 4, "d": 4},
        values=(lambda letters: sp.Integer(10**4) ** -sp.Rational(letters["i"], 2) / ntk[letters["i"]],),
    )


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    n, d = int(rng.integers(1, 5)), 2 * int(rng.integers(2, 5))
    scaling = (str(rng.choice(["linear", "ntk"])), float(rng.uniform(0.5, 8)))
    return {"x": rng.normal(size=(2, n, d)), "positions": rng.integers(0, 5000, size=n), "scaling": scaling}


EQUATIONS = (
    Equation(
        slug="rope-scaling",
        number=None,
        title="Scaling the frequencies of RoPE",
        statement=r"\theta_i = \alpha^{-2i/d} \cdot 10000^{-2i/d}",
        sources=(Source("002", "6.3", 886),),
        symbols=(
            Symbol(r"\theta_i", r"\mathbb{R}_{> 0}", "the frequency of pair i of d features"),
            Symbol(r"\alpha", r"\mathbb{R}_{> 0}", "what multiplies the base"),
            Symbol("s", r"\mathbb{R}_{> 0}", "how many times longer the text is than in training"),
            Symbol("d", r"\mathbb{N}", "the width that is turned", "even, at least 4"),
        ),
        assumptions=(
            *ASSUMPTIONS,
            Assumption("there are at least two pairs", lambda a: a["x"].shape[-1] >= 4),
            Assumption("the factor is positive", lambda a: a["scaling"][1] > 0),
        ),
        sample=_sample,
        formula=rope,
        vjp=rope_vjp,
        steps=(
            _base,
            _any_length,
            _base_at_the_end,
            _linear,
            _ntk_by_pair,
            _ntk_at_the_ends,
            _only_this_exponent,
        ),
        costs=POSITIONS["rope"],
        errata=(_frequencies_fall, _not_interpolated, _one_method),
    ),
)
