"""Laws of unigram segmentation, against every way to cut a text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from veriformer.verify.checks.family import check
from veriformer.verify.checks.texts import pieces, same, total, unchanged
from veriformer.verify.operations.texts import ONE, draw_segmentation, rng_of
from veriformer.verify.strategies import choice
from veriformer.verify.trial import Arguments, Trial


def _cuts(text: str) -> Iterator[list[str]]:
    if not text:
        yield []
    for end in range(1, len(text) + 1):
        yield from ([text[:end], *rest] for rest in _cuts(text[end:]))


def _cut(trial: Trial, a: Arguments) -> tuple[float, str]:
    """The total of the cut that a call gives, and its expression. Raises Violation unless it is a cut of the text."""
    found, e = pieces(trial, a, str)
    same(trial, "".join(found), f"''.join({e})", a["text"], "what the pieces join to")
    scored = f"sum({a['log_probs']!r}.get(piece, -inf) for piece in {e})"
    score = total(found, a["log_probs"])
    possible = score > -math.inf
    trial.require(possible, f"{found} holds a piece that is unknown or forbidden", f"{scored} > -inf")
    return score, scored


def _contract(trial: Trial) -> None:
    a = draw_segmentation(trial)
    pieces(trial, a, str)
    same(trial, *pieces(trial, {**a, "text": ""}, str), [], "the pieces of the empty text")


def _equation(trial: Trial) -> None:
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
    trial.require(c >= a + b, f"the total of both texts is {c}, and apart they have {a} + {b}", said)
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
    trial.require(after >= before, f"a piece more, and the total falls to {after}", f"{said_after} >= {said_before}")
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
