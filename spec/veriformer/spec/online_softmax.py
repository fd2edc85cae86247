"""The online softmax: attention over parts of the keys, merged (document 000, section 10.2).

A state is (m, l, o): the largest score, the sum of e^{s − m}, and the values weighted by e^{s − m}.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from veriformer.spec.points import equals


class State(NamedTuple):
    """What a part of the keys has contributed to each row: m [..., n_q, 1], l [..., n_q, 1], o [..., n_q, d_v]."""

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
    e = xp.exp(s - xp.where(equals(m, -math.inf), 0, m))
    return State(m, xp.sum(e, axis=-1, keepdims=True), xp.matmul(e, v))


def merge(xp: Any, a: State, b: State) -> State:
    """The state of both parts together: both are rescaled to the common maximum and added."""
    m = xp.maximum(a.m, b.m)
    shift = xp.where(equals(m, -math.inf), 0, m)
    c_a, c_b = xp.exp(a.m - shift), xp.exp(b.m - shift)
    return State(m, a.l * c_a + b.l * c_b, a.o * c_a + b.o * c_b)


def finish(xp: Any, state: State) -> Any:
    """o / l: the attention output of all parts merged so far; a zero row where nothing was visible."""
    empty = equals(state.m, -math.inf)
    return xp.where(empty, 0, state.o / xp.where(empty, 1, state.l))
