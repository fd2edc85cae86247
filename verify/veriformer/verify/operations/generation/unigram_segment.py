"""Unigram segmentation: its record, and its laws against every way to cut a text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from veriformer.spec.language.unigram_segment import unigram_segment
from veriformer.verify.judging.op_info import InvalidCall, OpInfo
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.family import check
from veriformer.verify.operations.generation.texts import ONE, draw_text, pieces, rng_of, same, total, unchanged
from veriformer.verify.strategies import choice, extent

_SPREADS = (0, 0, 2, 64, 8000)


def draw_segmentation(trial: Trial, *, longest: int = 7, spreads: Sequence[int] = _SPREADS) -> Arguments:
    """Draw a text, and pieces with log-probabilities whose sums are exact; each character is a piece.

    spreads: in eighths of a letter, how far log-probabilities may lie apart; probabilities of the largest underflow.
    """
    rng, letters = rng_of(trial), trial.draw(choice("ab", "abc", "a", "中é", "a🙂", "a ", "e\u0301ﬁ"))
    text = draw_text(rng, letters, longest)[:longest]
    return {"text": text, "log_probs": _table(rng, letters, text, spreads)}


def _table(rng: np.random.Generator, letters: str, text: str, spreads: Sequence[int]) -> dict[str, float]:
    """Draw pieces of up to six letters, unordered, some forbidden; with ties of all cuts, or differences only in fp64.

    Sums are exact in fp64 as long as none exceeds 2^14.
    """
    source = text + "".join(rng.choice(list(letters), 6))
    places = rng.integers(0, len(source) - 1, rng.integers(0, 14))
    pieces = sorted({*letters, *(source[i : i + rng.integers(2, 7)] for i in places)})
    spread = int(rng.choice(spreads))
    table = dict[str, float]()
    for i in rng.permutation(len(pieces)):
        eighths, rest = (int(rng.integers(0, n)) for n in (spread * len(pieces[i]) + 1, 4))
        forbidden = len(pieces[i]) > 1 and rng.random() < 0.15
        table[pieces[i]] = -math.inf if forbidden else -(len(pieces[i]) + eighths) / 8 - rest * 2.0**-38
    return table


def _bad_segmentation(trial: Trial) -> Iterator[InvalidCall]:
    a = draw_segmentation(trial)
    table = a["log_probs"]
    yield InvalidCall("an unknown letter", {**a, "text": a["text"] + "z"}, ("text", "log_probs"))
    yield InvalidCall("a text before an unknown letter", {**a, "text": "z" + a["text"]}, ("text", "log_probs"))
    yield InvalidCall("an empty table", {"text": "a", "log_probs": {}}, ("text", "log_probs"))
    forbidden = {**{k: v for k, v in table.items() if "z" not in k}, "z": -math.inf}
    yield InvalidCall("a forbidden letter", {"text": "z", "log_probs": forbidden}, ("text", "log_probs"))
    yield InvalidCall("no text", {**a, "text": None}, ("text",))
    yield InvalidCall("no table", {"text": "a", "log_probs": None}, ("log_probs",))


def _ordinary(trial: Trial) -> Arguments:
    return draw_segmentation(trial, spreads=_SPREADS[:-1])


UNIGRAM_SEGMENT = OpInfo(
    name="unigram_segment",
    sample=draw_segmentation,
    sample_basic=_ordinary,
    invalid_calls=_bad_segmentation,
    dtypes=ONE,
)


def _cuts(text: str) -> Iterator[list[str]]:
    if not text:
        yield []
    for end in range(1, len(text) + 1):
        yield from ([text[:end], *rest] for rest in _cuts(text[end:]))


def _cut(trial: Trial, a: Arguments) -> tuple[float, str]:
    """Return the total of a call's cut, and its expression. Raises Violation unless it is a cut of the text."""
    found, e = pieces(trial, a, str)
    same(trial, "".join(found), f"''.join({e})", a["text"], "what the pieces join to")
    scored = f"sum({a['log_probs']!r}.get(piece, -inf) for piece in {e})"
    score = total(found, a["log_probs"])
    possible = score > -math.inf
    trial.assert_true(possible, f"{found} holds a piece that is unknown or forbidden", f"{scored} > -inf")
    return score, scored


def _contract(trial: Trial) -> None:
    a = _ordinary(trial)
    pieces(trial, a, str)
    same(trial, *pieces(trial, {**a, "text": ""}, str), [], "the pieces of the empty text")


def _long(trial: Trial) -> Arguments:
    """Return a text of any length and a table of any size, with long pieces of the text in it and short ones of no
    order.
    """
    rng, letters = rng_of(trial), "abcd"
    text = "".join(rng.choice(list(letters), trial.draw(extent(1, 1000))))
    table = _table(rng, letters, text, _SPREADS[:-1])
    for _ in range(trial.draw(extent(1, 200))):
        start, length = int(rng.integers(len(text))), int(40 ** rng.random())
        piece = text[start : start + length]
        table[piece] = -float(rng.integers(len(piece), 9 * len(piece) + 1)) / 8
    return {"text": text, "log_probs": table}


def _equation(trial: Trial) -> None:
    if trial.draw(choice(False, False, True)):
        a = _long(trial)
        best = total(unigram_segment(a["text"], a["log_probs"]), a["log_probs"])
    else:
        a = draw_segmentation(trial)
        best = max(total(cut, a["log_probs"]) for cut in _cuts(a["text"]))
    same(trial, *_cut(trial, a), best, "the total")


def _joins(trial: Trial) -> None:
    _cut(trial, draw_segmentation(trial, longest=24))


def _concatenation(trial: Trial) -> None:
    one = draw_segmentation(trial)
    rng, letters = rng_of(trial), sorted(set("".join(one["log_probs"])))
    other = {**one, "text": "".join(rng.choice(letters, int(rng.integers(0, 6))))}
    whole = {**one, "text": one["text"] + other["text"]}
    (a, said_a), (b, said_b), (c, said_c) = (_cut(trial, x) for x in (one, other, whole))
    said = f"{said_c} >= {said_a} + {said_b}"
    trial.assert_true(c >= a + b, f"the total of both texts is {c}, and apart they have {a} + {b}", said)
    apart = {**whole, "text": one["text"] + "|" + other["text"], "log_probs": {**one["log_probs"], "|": -1.5}}
    same(trial, *_cut(trial, apart), a - 1.5 + b, "the total of two texts with a letter between that no piece crosses")


def _vocabulary(trial: Trial) -> None:
    a, rng = draw_segmentation(trial), rng_of(trial)
    before, said_before = _cut(trial, a)
    n = len(a["text"])
    low, high = sorted(rng.integers(0, n + 1, 2).tolist())
    new = a["text"][low:high] or "zz"
    trial.assume(new not in a["log_probs"])
    more = {**a, "log_probs": {**a["log_probs"], new: -float(rng.integers(0, 80)) / 8}}
    after, said_after = _cut(trial, more)
    best = max(total(cut, more["log_probs"]) for cut in _cuts(more["text"]))
    trial.assert_true(
        after >= before, f"a piece more, and the total falls to {after}", f"{said_after} >= {said_before}"
    )
    same(trial, after, said_after, best, "the total with a piece more")
    forbidden = {**a, "log_probs": {**a["log_probs"], new: -math.inf}}
    same(trial, *_cut(trial, forbidden), before, "the total with a piece forbidden")


def _range(trial: Trial) -> None:
    n, size = trial.draw(choice(300, 150)), trial.draw(choice(7.5, 100.0, 2.25))
    text = ("ab" * n)[: int(rng_of(trial).integers(n, 2 * n))]
    k = trial.draw(choice(20, 3, 9))
    table = {text[:length]: -size * length for length in range(1, 2 * k)}
    table |= {"b": -size, "ab": -2 * size + 0.5, "ba": -2 * size, "ab" * k: (1 - 2 * size) * k}
    best = -size * len(text) + k * (len(text) // (2 * k)) + 0.5 * (len(text) % (2 * k) // 2)
    same(trial, *_cut(trial, {"text": text, "log_probs": table}), best, "the total of a long text")


_LAWS: dict[str, Any] = {
    "contract": _contract,
    "equation": _equation,
    "joins": _joins,
    "concatenation": _concatenation,
    "vocabulary": _vocabulary,
    "purity": lambda trial: unchanged(trial, draw_segmentation(trial), "log_probs"),
}


CHECKS = (
    *(check(f"unigram_segment.{name}", body, dtypes=ONE, effort=2) for name, body in _LAWS.items()),
    check("unigram_segment.range", _range, dtypes=ONE, effort=0.3),
)
