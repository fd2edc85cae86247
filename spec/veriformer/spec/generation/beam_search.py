"""Beam search (document 003, section 12)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import BEAM
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.proofs.indexed import dimension, index, positive, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.published import holds

Scorer = Callable[[NDArray[np.int64]], Any]


@dataclass(frozen=True)
class Hypothesis:
    """A text and the sum of the log-probabilities of what was generated of it."""

    ids: tuple[int, ...]
    total: Any


def score(h: Hypothesis, start: int, length_penalty: float) -> Any:
    """The sum over length^penalty, the length counting generated tokens only."""
    length = len(h.ids) - start
    return h.total / length**length_penalty if length_penalty and length else h.total


def beam_search(
    step: Scorer, start: Sequence[int], *, beam_width: int, max_length: int, eos: int, length_penalty: float = 0.0
) -> tuple[list[int], Any]:
    """The best text found and its score; step(ids [b, t]) gives log-probabilities [b, V].

    Each round keeps the beam_width continuations of highest sum, of all live texts, equal ones in the order of texts
    and ids; those that end in eos leave the beam. Texts alive at max_length, start included, compete with them.
    ValueError, naming `step`, when every continuation has probability 0.
    """
    live, finished = [Hypothesis(tuple(start), 0)], []
    while live and len(live[0].ids) < max_length:
        kept = sorted(_continuations(step, live), key=lambda h: -h.total)[:beam_width]
        finished += [h for h in kept if h.ids[-1] == eos]
        live = [h for h in kept if h.ids[-1] != eos]
    if not (finished or live):
        raise ValueError("step: expected a continuation of positive probability")
    best = max(finished + live, key=lambda h: score(h, len(start), length_penalty))
    return list(best.ids), score(best, len(start), length_penalty)


def _continuations(step: Scorer, live: list[Hypothesis]) -> Iterator[Hypothesis]:
    rows = step(np.array([h.ids for h in live], dtype=np.int64))
    for h, row in zip(live, rows, strict=True):
        yield from (Hypothesis((*h.ids, k), h.total + x) for k, x in enumerate(row) if x > -math.inf)


def _table(seed: int, size: int) -> Scorer:
    """Made-up log-probabilities: rational numbers that depend on the whole text."""

    def row(ids: Any) -> list[Any]:
        state = seed
        for i in ids:
            state = (state * 31 + int(i) + 7) % 1009
        return [-sp.Rational((state * (k + 3) + 17 * k) % 101 + 1, 53) for k in range(size)]

    return lambda batch: [row(ids) for ids in batch]


_EOS = 0


def _texts(size: int, length: int) -> Iterator[tuple[int, ...]]:
    """Every text of `length` tokens after the start, or fewer with the end as the last one and nowhere else."""
    for n in range(1, length + 1):
        for ids in product(range(size), repeat=n):
            if _EOS not in ids[:-1] and (n == length or ids[-1] == _EOS):
                yield ids


def _sum(step: Scorer, ids: tuple[int, ...]) -> Any:
    return sum(step(np.array([(1, *ids[:k])]))[0][i] for k, i in enumerate(ids))


def _search(step: Scorer, width: int, length: int, penalty: float = 0) -> tuple[list[int], Any]:
    return beam_search(step, [1], beam_width=width, max_length=1 + length, eos=_EOS, length_penalty=penalty)


_CASES = [(seed, size, length) for seed in range(4) for size, length in ((2, 3), (3, 2), (3, 3))]


@step(scope=Scope.ENUMERATED, detail="the same models, penalties 0 and 1, against every text")
def _exhaustive() -> Identities:
    """A beam that holds every text finds the best of all texts, with and without a length penalty."""
    for seed, size, length in _CASES:
        step = _table(seed, size)
        for penalty in (0, 1):
            every = [_sum(step, ids) / len(ids) ** penalty for ids in _texts(size, length)]
            yield _search(step, size**length, length, penalty)[1], sp.Max(*every, evaluate=False)


def _greedily(step: Scorer, length: int) -> list[int]:
    ids = [1]
    while len(ids) <= length and (ids[1:] or [1])[-1] != _EOS:
        row = step(np.array([ids]))[0]
        ids.append(max(range(len(row)), key=lambda k: row[k]))
    return ids


@step(scope=Scope.ENUMERATED, detail="twelve models of 2 or 3 tokens, up to 3 rounds")
def _width_one() -> Identities:
    """A beam of width one is greedy decoding."""
    for seed, size, length in _CASES:
        step = _table(seed, size)
        found = computed(_search, step, 1, length)
        ids, _ = found.value
        yield holds(ids == _greedily(step, length))
        yield found.then(lambda pair: pair[1]), _sum(step, tuple(ids[1:]))


@step(scope=Scope.ENUMERATED, detail="the same models, widths 2 and 3, penalty 1")
def _own_score() -> Identities:
    """At any width the score is that of the text that is returned, which ends in the end token or is as long as
    allowed.
    """
    for (seed, size, length), width in product(_CASES, (2, 3)):
        step = _table(seed, size)
        found = computed(_search, step, width, length, 1)
        ids, _ = found.value
        yield found.then(lambda pair: pair[1] * (len(pair[0]) - 1)), _sum(step, tuple(ids[1:]))
        yield holds(ids[-1] == _EOS or len(ids) == 1 + length)


def _indifferent(size: int) -> Scorer:
    """Every continuation of every text is as likely as any other."""
    return lambda batch: [[-sp.log(size)] * size for _ in batch]


@step(scope=Scope.ENUMERATED, detail="the same models, and one that finds every token equally likely; widths 1 to 3")
def _nothing_is_drawn() -> Identities:
    """Asked again it finds the same text; where every text is as likely as any other, that is the one with the first
    token everywhere, at any width: of equal sums those are kept that come first.
    """
    for (seed, size, length), width in product(_CASES, (1, 2, 3)):
        ids, _ = _search(_table(seed, size), width, length)
        yield holds(_search(_table(seed, size), width, length)[0] == ids)
        # No text ends before its time: there is no token −1.
        tied, _ = beam_search(_indifferent(size), [1], beam_width=width, max_length=1 + length, eos=-1)
        yield holds(tied == [1] + [0] * length)


# The first token is 1 or 2, with 0.6 and 0.4; after 1 both follow with 0.5, after 2 with 0.9 and 0.1.
_PROBABILITIES = {(): ("0", "0.6", "0.4"), (1,): ("0", "0.5", "0.5"), (2,): ("0", "0.9", "0.1")}


def _two_rounds(batch: Any) -> list[list[Any]]:
    rows = [_PROBABILITIES[tuple(int(i) for i in ids[1:])] for ids in batch]
    return [[-sp.oo if p == "0" else sp.log(sp.Rational(p)) for p in row] for row in rows]


@step(scope=Scope.ENUMERATED, detail="one example")
def _greedy_is_not_best() -> Identities:
    """The best first token need not begin the best text: 0.6 and then 0.5 make 0.3, while 0.4 and then 0.9 make 0.36,
    which a beam of two finds.
    """
    for width, probability in ((1, "0.3"), (2, "0.36")):
        yield computed(_search, _two_rounds, width, 2).then(lambda pair: sp.exp(pair[1])), sp.Rational(probability)


@step()
def _longer_is_never_likelier() -> Identities:
    r"""Each further token adds $\log p_{n+1} \le 0$ to the sum: without a penalty, a text never scores above its own
    beginning, which favours short ones.
    """
    # x_t = −log p_t is not negative.
    x, t, n = sp.IndexedBase("x", nonnegative=True), index("t"), dimension("n")
    yield -symbolic_sum(x[t], t, n + 1), -symbolic_sum(x[t], t, n) - x[n + 1]


@step()
def _mean() -> Identities:
    r"""With $\alpha = 1$ the score is the mean, $-\log$ of the perplexity: one token more raises it if and only if its
    log-probability is above the mean, by $(x_{n+1} - \bar{x}_n) / (n + 1)$; n tokens of probability b have perplexity
    1/b.
    """
    x, t, n, b = vector("x"), index("t"), dimension("n"), positive("b")
    mean = symbolic_sum(x[t], t, n) / n
    yield symbolic_sum(x[t], t, n + 1) / (n + 1) - mean, (x[n + 1] - mean) / (n + 1)
    yield sp.exp(-symbolic_sum(sp.log(b), t, n) / n), 1 / b


EQUATIONS = (
    Equation(
        slug="beam-search",
        number=None,
        title="Beam search",
        statement=r"\mathrm{arg}\max_{x} \frac{1}{n^\alpha} \sum_{t=1}^{n} \log P(x_t | x_{<t})",
        sources=(Source("003", "12, Mathematical Formulation", 1521),),
        symbols=(
            Symbol("b", r"\mathbb{N}", "the width, how many hypotheses are kept at each step"),
            Symbol("n", r"\mathbb{N}", "how many tokens were generated, the end included"),
            Symbol(r"\alpha", r"\mathbb{R}_{\ge 0}", "the length penalty; 0 compares plain sums"),
        ),
        assumptions=(
            Assumption("the beam is not empty", lambda a: a["beam_width"] >= 1),
            Assumption("there is room for a token", lambda a: a["max_length"] > len(a["start"])),
        ),
        sample=lambda rng: {"beam_width": int(rng.integers(1, 5)), "max_length": int(rng.integers(2, 6)), "start": [1]},
        steps=(
            _width_one,
            _exhaustive,
            _own_score,
            _nothing_is_drawn,
            _greedy_is_not_best,
            _longer_is_never_likelier,
            _mean,
        ),
        costs=BEAM,
    ),
)
