"""A cache of bytes: symmetric rounding of every row to 255 levels (document 000, section 10.3)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.exact_inputs import exactly_equal
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import dimension, index, positive, real, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed

LEVELS = 127
"""Codes run from −127 to 127; −128 is not used, so that x and −x have opposite codes."""


def int8_codes(xp: Any, x: Any) -> Any:
    """round(127 x / absmax) of every row x [..., d], halves to even: an int8 array; zeros for a row of zeros.

    Which code is taken is a decision, and no arithmetic bounds it: near a half an implementation may take the other.
    """
    a = _absmax(xp, x)
    quotient = x * LEVELS / xp.where(exactly_equal(a, 0), 1, a)
    return np.frompyfunc(lambda q: round(float(q)), 1, 1)(np.asarray(quotient.value, dtype=object)).astype(np.int8)


def int8_round_trip(xp: Any, x: Any) -> Any:
    """codes · absmax / 127: what a cache of bytes returns for rows x [..., d]; within `int8_half_step` of x."""
    return int8_codes(xp, x).astype(np.int64) * (_absmax(xp, x) / LEVELS)


def int8_half_step(xp: Any, x: Any) -> Any:
    """absmax / 254 of every row [..., 1]: how far at most the row that is returned may be from x."""
    return _absmax(xp, x) / (2 * LEVELS)


def int8_cache_bytes() -> Any:
    """Keys and values in one byte each, with a scale of w bytes for each of their rows: 2 B G n_k (d_k + w)."""
    b, g, n_k, d_k, w = (costs.symbol(name) for name in ("B", "G", "n_k", "d_k", "w"))
    return 2 * b * g * n_k * (d_k + w)


def _absmax(xp: Any, x: Any) -> Any:
    return xp.max(abs(x), axis=-1, keepdims=True)


@step()
def _half_a_step() -> Identities:
    r"""Steps are a/127 wide, and the nearest code is at most half of one away: the error is $a / 254 - t \, a / 127 \le
    a / 254$, below the half and above it. At $t = 0$ it is attained.
    """
    # 127 x / a lies t below the half after the whole number m, or t above it, 0 ≤ t ≤ 1/2.
    m, t, a = real("m"), real("t"), positive("a")
    half = sp.Rational(1, 2)
    for code, offset in ((m, -t), (m + 1, t)):
        x = (m + half + offset) * a / LEVELS
        error = (x - code * a / LEVELS) * (1 if offset == -t else -1)
        yield error, a / 254 - t * a / LEVELS


@step()
def _range() -> Identities:
    """Nothing is clipped: a feature of magnitude $a - s$ has the code $127 - 127 s / a$ before it is rounded, and the
    largest one is returned as it was.
    """
    # With |x| = a − s, s ≥ 0, the code before rounding is 127 less something not negative.
    a, s = positive("a"), real("s")
    for sign in (1, -1):
        yield sign * (a - s) * LEVELS / a, sign * (LEVELS - LEVELS * s / a)


@step()
def _score() -> Identities:
    r"""The error of a score is $\mathbf{q} \cdot \mathbf{e} / \sqrt{d}$, so at most $\|\mathbf{q}\|_1 a / (254
    \sqrt{d})$.
    """
    q, k, e, c, d = vector("q"), vector("k"), vector("e"), index("c"), dimension("d")
    score = symbolic_sum(q[c] * k[c], c, d) / sp.sqrt(d)
    yield symbolic_sum(q[c] * (k[c] + e[c]), c, d) / sp.sqrt(d) - score, symbolic_sum(q[c] * e[c], c, d) / sp.sqrt(d)


@step()
def _weights() -> Identities:
    r"""Scores that move by at most ε change a weight by the factor $e^{e_i} \sum e^{s_j} / \sum e^{s_j} e^{e_j}$, which
    lies between $e^{-2\epsilon}$ and $e^{2\epsilon}$: no weight moves far.
    """
    # Scores that move by e_j ≤ ε: a weight times e^{e_i − Σ…}; its quotient with what it was lies within e^{±2ε}.
    s, e, i, j, n = vector("s"), vector("e"), index("i"), sp.Dummy("j", integer=True), dimension("n")
    before = sp.exp(s[i]) / symbolic_sum(sp.exp(s[j]), j, n)
    after = sp.exp(s[i] + e[i]) / symbolic_sum(sp.exp(s[j] + e[j]), j, n)
    yield (
        after / before,
        sp.exp(e[i]) * symbolic_sum(sp.exp(s[j]), j, n) / symbolic_sum(sp.exp(s[j]) * sp.exp(e[j]), j, n),
    )


_ROW = (127, 1, Fraction(1, 2), Fraction(-1287, 20), Fraction(5, 2))


@step(scope=Scope.ENUMERATED, detail="one row and its multiples")
def _worked() -> Identities:
    """The row (127, 1, 1/2, −64.35, 5/2) comes back as (127, 1, 0, −64, 2), and so does any positive multiple of it:
    halves go to the even code, and an error of 1/2 is just a/254.
    """
    # The row times any positive number, here b (b + c), for it must not matter.
    xp, b, c = Symbolic(), positive("b"), positive("c")
    row = xp.asarray(list(_ROW)) * (b * (b + c))
    yield from entrywise(int8_round_trip(xp, row), [code * b**2 + code * b * c for code in (127, 1, 0, -64, 2)])
    errors = abs(row - int8_round_trip(xp, row))
    yield errors.value[2], sp.expand(int8_half_step(xp, row).value[0])


@step()
def _memory() -> Identities:
    """With a scale per row the cache shrinks by $w d / (d + w)$: by a little less than 2 from two bytes per number, and
    a little less than 4 from four. Two bytes in place of four halve it.
    """
    d, w = costs.symbol("d_k"), costs.symbol("w")
    full = costs.kv_cache_bytes().subs(costs.symbol("d_v"), d)
    yield full / int8_cache_bytes(), w * d / (d + w)
    yield (full / int8_cache_bytes()).subs(w, 2), 2 - 4 / (d + 2)
    yield (full / int8_cache_bytes()).subs(w, 4), 4 - 16 / (d + 4)
    yield computed(costs.kv_cache_bytes).then(lambda count: count.subs(w, 4) / count.subs(w, 2)), sp.Integer(2)


@step(scope=Scope.ENUMERATED, detail="one model")
def _worked_cache() -> Identities:
    """For GPT-2 (12 layers, 12 heads of 64, 1,024 tokens) it takes 20,054,016 bytes instead of 75,497,472 in fp32: 3.76
    times less.
    """
    # GPT-2: 12 layers, 12 heads of 64 features, 1,024 tokens; scales in fp32.
    sizes = {"B": 1, "G": 12, "n_k": 1024, "d_k": 64, "d_v": 64, "w": 4}
    layer, full = (costs.evaluate(cost, **sizes) for cost in (int8_cache_bytes(), costs.kv_cache_bytes()))
    yield symbolic_sum(layer, index("l"), 12), sp.Integer(20_054_016)
    yield symbolic_sum(full, index("l"), 12), sp.Integer(75_497_472)


EQUATIONS = (
    Equation(
        slug="int8-cache",
        number=None,
        title="The cache in bytes",
        statement=r"\text{Reduce memory further with int8/fp16 KV cache storage}",
        sources=(
            Source("000", "10.3", 335),
            Source("001", "10.3", 414),
            Source("003", "10, Stage 5: KV Cache Operations", 1179),
        ),
        symbols=(
            Symbol("a", r"\mathbb{R}_{> 0}", "the largest magnitude of a row, kept with it as its scale"),
            Symbol("m", r"\mathbb{Z}", "the whole number below 127 x / a"),
            Symbol("t", r"[0, \tfrac{1}{2}]", "how far 127 x / a is from the half between two codes"),
            Symbol("e", r"\mathbb{R}^{d}", "what rounding did to a row, or to its score"),
        ),
        assumptions=(
            Assumption("the rows are numbers", lambda a: bool(np.isfinite(a["x"]).all())),
            Assumption("the rows are not empty", lambda a: a["x"].shape[-1] > 0),
        ),
        sample=lambda rng: {"x": rng.normal(size=tuple(rng.integers(1, 6, size=3))) * 10.0 ** rng.integers(-3, 4)},
        formula=int8_round_trip,
        steps=(_half_a_step, _range, _score, _weights, _worked, _memory, _worked_cache),
        costs={"bytes of the cache": int8_cache_bytes, "bytes of the cache, unquantised": costs.kv_cache_bytes},
    ),
)
