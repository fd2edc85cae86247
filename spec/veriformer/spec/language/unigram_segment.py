"""Unigram segmentation: the most probable way to cut a text (documents 000 and 001, section 11.3)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import UNIGRAM
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.proofs.indexed import dimension, index, symbolic_sum
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.published import holds


def unigram_segment(text: str, log_probs: Mapping[str, Any]) -> list[str]:
    """The pieces of highest total log-probability that join to the text, by Viterbi's algorithm; [] for "".

    Positions are code points, −∞ forbids a piece. ValueError, naming `text`, when no pieces join to it.
    """
    best: list[tuple[Any, int] | None] = [(0, 0)]
    for end in range(1, len(text) + 1):
        best.append(_best_last_piece(text, end, best, log_probs))
    if best[-1] is None:
        raise ValueError(f"text: expected one that pieces of log_probs join to, got {text!r}")
    return _traced(text, best)


def _best_last_piece(
    text: str, end: int, best: list[tuple[Any, int] | None], log_probs: Mapping[str, Any]
) -> tuple[Any, int] | None:
    """The score of the best cut of text[:end] and where its last piece starts; the longest last piece of equals."""
    candidates = []
    for start in range(end):
        before, own = best[start], log_probs.get(text[start:end], -math.inf)
        if before is not None and own > -math.inf:
            candidates.append((before[0] + own, start))
    return max(candidates, key=lambda c: c[0], default=None)


def _traced(text: str, best: list[tuple[Any, int] | None]) -> list[str]:
    pieces: list[str] = []
    end = len(text)
    while end and (entry := best[end]) is not None:
        pieces.append(text[entry[1] : end])
        end = entry[1]
    return pieces[::-1]


def _segmentations(text: str) -> Iterator[list[str]]:
    """All ways to cut a text, one by one."""
    if not text:
        yield []
    for end in range(1, len(text) + 1):
        for rest in _segmentations(text[end:]):
            yield [text[:end], *rest]


_TABLES: tuple[dict[str, Fraction], ...] = (
    {"a": Fraction(-1), "b": Fraction(-2), "ab": Fraction(-5, 2), "ba": Fraction(-4)},
    {"a": Fraction(-3), "b": Fraction(-3), "aa": Fraction(-1), "bab": Fraction(-4), "abab": Fraction(-7, 2)},
    {"a": Fraction(-1), "b": Fraction(-1), "ab": Fraction(-2), "aab": Fraction(-3)},
)


def _cases() -> list[tuple[str, dict[str, Fraction]]]:
    texts = ["".join(letters) for n in range(1, 5) for letters in product("ab", repeat=n)]
    return list(product(texts, _TABLES))


def _score(pieces: list[str], table: dict[str, Fraction]) -> Any:
    return sp.Rational(sum((table[piece] for piece in pieces), Fraction(0)))


@step(scope=Scope.ENUMERATED, detail="texts of a and b up to length 4, three tables, every cut")
def _optimal() -> Identities:
    """The score found is the largest of all ways to cut the text."""
    for text, table in _cases():
        every = [_score(cut, table) for cut in _segmentations(text) if all(piece in table for piece in cut)]
        # The bound below keeps a single cut from being folded to the number it is.
        yield _score(unigram_segment(text, table), table), sp.Max(*every, -(10**6), evaluate=False)


@step(scope=Scope.ENUMERATED, detail="texts of a and b up to length 4, three tables")
def _joins() -> Identities:
    """The pieces join to the text."""
    for text, table in _cases():
        yield holds("".join(unigram_segment(text, table)) == text)


@step(scope=Scope.ENUMERATED, detail="texts of a and b up to length 4, three tables")
def _prefixes_are_best() -> Identities:
    """The part before a cut of the best is itself the best for that prefix, since scores add: one score per prefix is
    all that need be kept.
    """
    for text, table in _cases():
        pieces = unigram_segment(text, table)
        for k in range(1, len(pieces)):
            prefix = unigram_segment("".join(pieces[:k]), table)
            yield computed(_score, pieces[:k], table), _score(prefix, table)


@step(scope=Scope.ENUMERATED, detail="n ≤ 7, counted")
def _ways() -> Identities:
    """There are $2^{n-1}$ ways to cut n letters: between neighbours there is a cut or there is none."""
    for length in range(1, 8):
        yield computed(_segmentations, "a" * length).then(lambda ways: len(list(ways))), sp.Integer(2) ** (length - 1)


@step()
def _work() -> Identities:
    """The algorithm looks at $n (n + 1) / 2$ pieces, one for every start and end."""
    n, end = dimension("n"), index("i")
    yield symbolic_sum(end, end, n), n * (n + 1) / 2


@step(scope=Scope.ENUMERATED, detail="one example")
def _unlike_merging() -> Identities:
    """Unigram segmentation finds ab, cd for "abcd" where merging bc first would leave three pieces."""
    # Merges bc, ab, cd leave a, bc, d, of three pieces.
    table = {piece: Fraction(-1) for piece in ("a", "b", "c", "d", "bc", "ab", "cd")}
    yield computed(unigram_segment, "abcd", table).then(len), sp.Integer(2)


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    table = {piece: -float(rng.uniform(0.1, 4)) for piece in ("a", "b", "ab", "ba", "aab")}
    return {"text": "".join(rng.choice(list("ab"), size=int(rng.integers(1, 8)))), "log_probs": table}


EQUATIONS = (
    Equation(
        slug="unigram-segmentation",
        number=None,
        title="Unigram segmentation",
        statement=r"\mathrm{arg}\max_{\tau_1 \cdots \tau_k = s} \sum_{i=1}^k \log P(\tau_i)",
        sources=(Source("000", "11.3", 415), Source("001", "11.3", 554)),
        symbols=(
            Symbol("s", r"\Sigma^*", "a text of n characters"),
            Symbol(r"\tau_i", r"\Sigma^*", "pieces, which join to the text"),
            Symbol("P", "(0, 1]", "the probability of a piece, independent of the others"),
        ),
        assumptions=(
            Assumption("some pieces join to the text", lambda a: set(a["text"]) <= set(a["log_probs"])),
            Assumption("no log-probability is above 0", lambda a: all(p <= 0 for p in a["log_probs"].values())),
        ),
        sample=_sample,
        steps=(_optimal, _joins, _prefixes_are_best, _ways, _work, _unlike_merging),
        costs=UNIGRAM,
    ),
)
