"""ALiBi: a bias that falls linearly with distance, at another slope for each head (document 002, section 6.3)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import POSITIONS, symbol
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.proofs.indexed import dimension, index, positive, real, symbolic_sum, vector


def alibi_slopes(xp: Any, num_heads: int) -> Any:
    """m_h = 2^(−8h/H) for h = 1 … H, where H is a power of two; shape [H].

    For other H, after Press, Smith and Lewis (2022): the slopes of the power of two below, then every other slope, from
    the first on, of the power of two above.
    """
    below = 1 << (int(num_heads).bit_length() - 1)
    own = [Fraction(8 * h, below) for h in range(1, below + 1)]
    between = [Fraction(8 * h, 2 * below) for h in range(1, 2 * below + 1, 2)]
    exponents = (own + between)[:num_heads]
    return xp.exp(xp.asarray([-e for e in exponents]) * xp.log(xp.asarray(2)))


def alibi_bias(xp: Any, num_heads: int, n_q: int, n_k: int) -> Any:
    """−m_h |i − j| for query i and key j, shape [H, n_q, n_k].

    The last query stands at the last key, so that query i has position i + n_k − n_q.
    """
    return xp.reshape(alibi_slopes(xp, num_heads), (num_heads, 1, 1)) * -distances(n_q, n_k)


def distances(n_q: int, n_k: int) -> NDArray[np.int64]:
    """|i − j| with the last query at the last key, shape [n_q, n_k]."""
    return np.asarray(np.abs(np.arange(n_q)[:, None] + (n_k - n_q) - np.arange(n_k)[None, :]), dtype=np.int64)


def _slope(h: Any, heads: Any) -> Any:
    return sp.exp(-8 * h / heads * sp.log(2))


@step()
def _geometric() -> Identities:
    """The slopes are a geometric sequence whose first term is its ratio: $m_{h+1} = m_h m_1$; whatever H is, the last
    is $m_H = 2^{-8}$.
    """
    h, heads = index("h"), dimension("H")
    yield _slope(h + 1, heads), _slope(h, heads) * _slope(1, heads)
    yield _slope(heads, heads), sp.Rational(1, 256)


@step()
def _between() -> Identities:
    """For H heads between two powers of two, P and 2P, the further slopes are $m'_{2h+1}$ of 2P heads: $m'^2_{2h+1} =
    m_h m_{h+1}$, so each is the geometric mean of two neighbours, and no slope comes twice.
    """
    h, below = index("h"), dimension("P")
    yield _slope(2 * h + 1, 2 * below) ** 2, _slope(h, below) * _slope(h + 1, below)


def _power(exponent: Fraction) -> Any:
    """2^−exponent as a power that SymPy has not worked out."""
    return sp.Pow(2, -sp.Rational(exponent.numerator, exponent.denominator), evaluate=False)


def _paper(heads: int) -> list[Fraction]:
    """The exponents by the paper's recursion."""
    if heads & (heads - 1) == 0:
        return [Fraction(8, heads) * h for h in range(1, heads + 1)]
    below = 2 ** (len(f"{heads:b}") - 1)
    return _paper(below) + _paper(2 * below)[0::2][: heads - below]


@step(scope=Scope.ENUMERATED, detail="H ≤ 9 and H = 12, 16")
def _slopes() -> Identities:
    """The formula computes the slopes of the paper's recursion."""
    for heads in (*range(1, 10), 12, 16):
        yield from zip(alibi_slopes(Symbolic(), heads).value, map(_power, _paper(heads)), strict=True)


@step(scope=Scope.ENUMERATED, detail="(H, n_q, n_k) of (1, 3, 3), (2, 1, 4), (3, 4, 2)")
def _bias() -> Identities:
    """The bias is linear in the distance, which is counted from the last query and the last key: one new query over
    cached keys gets the last row of the square.
    """
    for heads, n_q, n_k in ((1, 3, 3), (2, 1, 4), (3, 4, 2)):
        bias = alibi_bias(Symbolic(), heads, n_q, n_k).value
        for h, i, j in np.ndindex(*bias.shape):
            # Counted from the end, where the last query meets the last key.
            yield bias[h, i, j], -_power(_paper(heads)[h]) * abs((n_q - i) - (n_k - j))


def _weight(j: Any, bias: Any) -> Any:
    k, s = sp.Dummy("k", integer=True), vector("s")
    return sp.exp(s[j] + bias(j)) / symbolic_sum(sp.exp(s[k] + bias(k)), k, dimension("n"))


@step()
def _row_shift() -> Identities:
    """Over the keys up to its position p, a query has the same weights from $-m(p - j)$ as from $m j$, since $-m p$ is
    one number for the whole row: for causal attention a row of the bias may be moved, and need not know p.
    """
    m, p, j = positive("m"), real("p"), index("j")
    yield _weight(j, lambda k: -m * (p - k)), _weight(j, lambda k: m * k)


@step()
def _decay() -> Identities:
    """Among keys that are as similar, each step further back multiplies the weight by $e^{-m}$: a linear bias is
    exponential forgetting.
    """
    m, p, (j, k), s = positive("m"), real("p"), index("j k"), vector("s")
    weights = [_weight(x, lambda y: -m * (p - y)) for x in (k, j)]
    yield weights[0] / weights[1], sp.exp(s[k] - s[j]) * sp.exp(-m) ** (j - k)


def _sample_heads(rng: np.random.Generator) -> dict[str, Any]:
    return {"num_heads": int(rng.integers(1, 20))}


_HEADS = Assumption("there is at least one head", lambda a: a["num_heads"] >= 1)
_SLOPE = Symbol("m_h", r"(0, 1)", "the slope of head h")

EQUATIONS = (
    Equation(
        slug="alibi-slopes",
        number=None,
        title="The slopes of ALiBi",
        statement=r"m_h = 2^{-8h/H}, \quad h = 1, \ldots, H",
        sources=(Source("002", "6.3", 860),),
        symbols=(Symbol("H", r"\mathbb{N}", "the number of heads", "a power of two in the statement"), _SLOPE),
        assumptions=(_HEADS,),
        sample=_sample_heads,
        formula=alibi_slopes,
        steps=(_geometric, _between, _slopes),
        costs={"other operations": lambda: symbol("H"), "parameters": lambda: sp.S.Zero},
    ),
    Equation(
        slug="alibi",
        number=None,
        title="Attention with linear biases",
        statement=r"\text{softmax}\left(\frac{QK^T}{\sqrt{d_k}} + \text{bias}_{ij}\right)V, \quad "
        r"\text{bias}_{ij} = -m \cdot |i - j|",
        sources=(Source("002", "6.3", 857), Source("002", "6.3", 860)),
        symbols=(
            _SLOPE,
            Symbol("i, j", r"\mathbb{Z}", "positions of query and key", "the last query stands at the last key"),
            Symbol("p", r"\mathbb{R}", "the position of a query in the steps"),
            Symbol("s", r"\mathbb{R}^n", "its scores without the bias"),
        ),
        assumptions=(_HEADS, Assumption("there are queries and keys", lambda a: a["n_q"] > 0 and a["n_k"] > 0)),
        sample=lambda rng: {**_sample_heads(rng), "n_q": int(rng.integers(1, 6)), "n_k": int(rng.integers(1, 6))},
        formula=alibi_bias,
        steps=(_bias, _row_shift, _decay),
        costs=POSITIONS["alibi"],
    ),
)
