"""The online softmax: attention over parts of the keys, merged (document 000, section 10.2).

A state is (m, l, o): the largest score, the sum of e^{s − m}, and the values weighted by e^{s − m}.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.exact_inputs import exactly_equal
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import dimension, index, positive, real, sum_over, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic


class State(NamedTuple):
    """State of a part of the keys for each row: m [..., n_q, 1], l [..., n_q, 1], o [..., n_q, d_v]."""

    m: Any
    l: Any
    o: Any


def partial(xp: Any, s: Any, v: Any) -> State:
    """The state of one part: m = max s, l = Σ e^{s − m}, o = Σ e^{s − m} v, for s [..., n_q, n_k], v [..., n_k, d_v].

    Scores may be −∞ (hidden); a row of a part that is all −∞, or a part without keys, is the neutral state.
    """
    if s.shape[-1] == 0:
        zero = xp.matmul(s, v)
        none = xp.sum(s, axis=-1, keepdims=True)
        return State(none - math.inf, none, zero)
    m = xp.max(s, axis=-1, keepdims=True)
    e = xp.exp(s - xp.where(exactly_equal(m, -math.inf), 0, m))
    return State(m, xp.sum(e, axis=-1, keepdims=True), xp.matmul(e, v))


def merge(xp: Any, a: State, b: State) -> State:
    """The state of both parts together: both are rescaled to the common maximum and added."""
    m = xp.maximum(a.m, b.m)
    shift = xp.where(exactly_equal(m, -math.inf), 0, m)
    c_a, c_b = xp.exp(a.m - shift), xp.exp(b.m - shift)
    return State(m, a.l * c_a + b.l * c_b, a.o * c_a + b.o * c_b)


def finish(xp: Any, state: State) -> Any:
    """o / l: the attention output of all parts merged so far; a zero row where nothing was visible."""
    empty = exactly_equal(state.m, -math.inf)
    return xp.where(empty, 0, state.o / xp.where(empty, 1, state.l))


def online_attention(xp: Any, s: Any, v: Any, sizes: list[int]) -> Any:
    """softmax(s) v computed part by part: the keys are split into parts of these sizes, in order."""
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    parts = [partial(xp, s[..., a : a + n], v[..., a : a + n, :]) for a, n in zip(starts, sizes, strict=True)]
    state = parts[0]
    for part in parts[1:]:
        state = merge(xp, state, part)
    return finish(xp, state)


def _state(name: str) -> State:
    return State(
        *(np.array([[x]], dtype=object) for x in (real(f"m_{name}"), positive(f"l_{name}"), real(f"o_{name}")))
    )


def _merged(*names: str) -> tuple[Any, list[Any]]:
    xp = Symbolic()
    states = [State(*map(xp.asarray, _state(name))) for name in names]
    return xp, states


def _scalars(state: State) -> list[Any]:
    return [x.value[0, 0] for x in state]


def _unshifted(state: State) -> list[Any]:
    """Return the sums that the state represents: l e^m = Σ e^s, and o e^m = Σ e^s v."""
    m, l, o = _scalars(state)
    return [l * sp.exp(m), o * sp.exp(m)]


@step()
def _adds() -> Identities:
    r"""A state stands for $l e^m = \sum e^s$ and $\mathbf{o} e^m = \sum e^s \mathbf{v}$; merging adds what the two
    states stand for. So the order does not matter, and a part that sees nothing, $(-\infty, 0, 0)$, adds nothing.
    """
    xp, (a, b) = _merged("a", "b")
    both = [x + y for x, y in zip(_unshifted(a), _unshifted(b), strict=True)]
    yield from zip(_unshifted(merge(xp, a, b)), both, strict=True)
    yield from zip(_unshifted(merge(xp, b, a)), both, strict=True)
    nothing = State(*map(xp.asarray, ([[-sp.oo]], [[0]], [[0]])))
    yield from zip(_unshifted(merge(xp, a, nothing)), _unshifted(a), strict=True)


@step()
def _associative() -> Identities:
    r"""Nor does the grouping: $(a \oplus b) \oplus c = a \oplus (b \oplus c)$, entry by entry."""
    xp, (a, b, c) = _merged("a", "b", "c")
    left, right = merge(xp, merge(xp, a, b), c), merge(xp, a, merge(xp, b, c))
    yield from zip(_scalars(left), _scalars(right), strict=True)


@step()
def _induction() -> Identities:
    r"""If n keys are in the state, whatever its shift, then after merging key $n + 1$ the quotient $\mathbf{o} / l$ is
    attention over $n + 1$ keys. With associativity: for every split of any number of keys. This is why attention in
    blocks is exact.
    """
    # n keys are in the state of any shift m; key n + 1 is merged into it.
    s, v, j, n, m = vector("s"), vector("v"), index("j"), dimension("n"), real("m")
    xp = Symbolic()
    sums = [symbolic_sum(sp.exp(s[j] - m), j, n), symbolic_sum(sp.exp(s[j] - m) * v[j], j, n)]
    before = State(*(xp.asarray([[x]]) for x in (m, *sums)))
    one = partial(xp, xp.asarray([[s[n + 1]]]), xp.asarray([[v[n + 1]]]))
    _, l, o = _scalars(merge(xp, before, one))
    after = [symbolic_sum(sp.exp(s[j]) * x, j, n + 1) for x in (1, v[j])]
    yield o / l, after[1] / after[0]


@step()
def _bounded() -> Identities:
    r"""Merging multiplies the sum of the part with the smaller maximum by $e^{-t}$, with the gap $t \ge 0$ of the two,
    and the other by 1. If neither sum is larger than its number of keys, that of both is not: $n_a + n_b - l = (n_a -
    l_a) + (n_b - l_b) + l_b (1 - e^{-t})$. So nothing overflows, however the keys are split.
    """
    xp, t, m = Symbolic(), sp.Symbol("t", nonnegative=True), real("m")
    (n_a, n_b), (l_a, l_b) = positive("n_a n_b"), positive("l_a l_b")
    high, low = (State(*(xp.asarray([[x]]) for x in (top, l, 0))) for top, l in ((m, l_a), (m - t, l_b)))
    slack = (n_a - l_a) + (n_b - l_b) + l_b * (1 - sp.exp(-t))
    yield n_a + n_b - _scalars(merge(xp, high, low))[1], slack
    yield n_a + n_b - _scalars(merge(xp, low, high))[1], slack


def _splits(n: int) -> Iterator[list[int]]:
    for count in range(n):
        for cuts in combinations(range(1, n), count):
            ends = [0, *cuts, n]
            yield [b - a for a, b in pairwise(ends)]


@step(scope=Scope.ENUMERATED, detail="n ≤ 4")
def _every_split() -> Identities:
    """The formula agrees with softmax for every split into consecutive parts."""
    for n in range(1, 5):
        for sizes in _splits(n):
            xp = TowerArithmetic()
            s, v = xp.symbols("s", 1, n), xp.symbols("v", n, 1)
            e = [sp.exp(x) for x in s.value[0]]
            printed = sum(x * y for x, y in zip(e, v.value[:, 0], strict=True)) / sum(e)
            yield from entrywise([xp.in_full(online_attention(xp, s, v, sizes).value[0, 0])], [printed])


def _over_keys(start: Any, size: Any, value: Any) -> Any:
    """Σ e^{s_ij} value(j) over the keys j = start + 1 … start + size, for row i."""
    return sum_over(size, lambda j: sp.exp(vector("s")[index("i"), start + j]) * value(start + j))


@step()
def _any_length() -> Identities:
    """The computation part by part is softmax over all keys, for two and for three parts of any sizes. More parts are
    the induction above.
    """
    xp, (i, c), v = AnyLength(), index("i c"), vector("v")
    n_q, d_v, m, n, k = map(dimension, ("n_q", "d_v", "m", "n", "k"))
    for sizes in ([m, n], [m, n, k]):
        keys, starts = sum(sizes), [sum(sizes[:part]) for part in range(len(sizes))]
        found = computed(online_attention, xp, xp.array("s", n_q, keys), xp.array("v", keys, d_v), sizes)
        printed = [
            sum(_over_keys(start, size, value) for start, size in zip(starts, sizes, strict=True))
            for value in (lambda j: v[j, c], lambda _: 1)
        ]
        yield found.then(entry(i, c)), printed[0] / printed[1]


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    sizes = [int(n) for n in rng.integers(1, 4, size=int(rng.integers(1, 4)))]
    return {"s": rng.normal(size=(2, sum(sizes))), "v": rng.normal(size=(sum(sizes), 3)), "sizes": sizes}


EQUATIONS = (
    Equation(
        slug="online-softmax",
        number=None,
        title="The online softmax",
        statement=r"(m, l, \mathbf{o}) \oplus (m', l', \mathbf{o}') = \left(\bar{m}, \ l e^{m - \bar{m}} + l' e^{m' "
        r"- \bar{m}}, \ "
        r"\mathbf{o} e^{m - \bar{m}} + \mathbf{o}' e^{m' - \bar{m}}\right), \quad \bar{m} = \max(m, m')",
        sources=(Source("000", "10.2", 286), Source("001", "10.2", 358)),
        symbols=(
            Symbol("m", r"\mathbb{R} \cup \{-\infty\}", "the largest score so far"),
            Symbol("l", r"\mathbb{R}_{\ge 0}", "the sum of the exponentials of score less m"),
            Symbol(r"\mathbf{o}", r"\mathbb{R}^{d_v}", "the values weighted by these exponentials"),
        ),
        assumptions=(
            Assumption(
                "the parts are as long as the keys", lambda a: sum(a["sizes"]) == a["s"].shape[-1] == a["v"].shape[0]
            ),
            Assumption("there is at least one part", lambda a: len(a["sizes"]) > 0),
        ),
        sample=_sample,
        formula=online_attention,
        steps=(_adds, _associative, _induction, _bounded, _every_split, _any_length),
        costs={
            "FLOPs, causal and tiled": costs.tiled_causal_flops,
            "peak extra bytes": costs.tiled_attention_peak,
            "peak extra bytes as printed": costs.reference_attention_peak,
        },
    ),
)
