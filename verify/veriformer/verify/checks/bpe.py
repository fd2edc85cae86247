"""Laws of byte-pair encoding."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from veriformer.spec.language.bpe import bpe_encode, bpe_train, merged, pair_counts
from veriformer.verify.checks.family import check
from veriformer.verify.checks.texts import merges, pieces, same, unchanged
from veriformer.verify.operations.texts import (
    ONE,
    draw_clear_texts,
    draw_encoding,
    draw_long_encoding,
    draw_long_text,
    draw_many_places,
    draw_texts,
    most_frequent,
    rng_of,
)
from veriformer.verify.strategies import choice
from veriformer.verify.trial import Arguments, Trial


def _drawn(trial: Trial) -> Arguments:
    rng, _, texts = draw_texts(trial)
    return {"texts": texts, "num_merges": int(rng.integers(0, 7))}


def _learned(trial: Trial) -> None:
    merges(trial, _drawn(trial))


def _training(trial: Trial) -> None:
    a = draw_clear_texts(trial)
    same(trial, *merges(trial, a), bpe_train(a["texts"], a["num_merges"]), "the merges")


def _long(trial: Trial) -> Arguments:
    """A long text, given more than once, and merges enough to make it one piece."""
    rng = rng_of(trial)
    text = draw_long_text(rng, 72)
    return {"texts": [text] * int(rng.integers(2, 4)), "num_merges": len(text.encode())}


def _dense(trial: Trial) -> Arguments:
    """A text of few letters and merges enough that pieces end and begin like others."""
    rng = rng_of(trial)
    text = "".join(rng.choice(list("abcd"), int(rng.integers(60, 201))))
    return {"texts": [text], "num_merges": int(rng.integers(12, 21))}


def _chained(trial: Trial) -> Arguments:
    """Words out of one chain of letters: a merge takes from the pairs beside it, which may stay the most frequent."""
    rng = rng_of(trial)
    starts = rng.integers(0, 4, int(rng.integers(3, 8)))
    texts = ["abcdef"[i : i + rng.integers(2, 5)] for i in starts for _ in range(rng.integers(1, 6))]
    return {"texts": texts, "num_merges": int(rng.integers(2, 6))}


def _most_frequent(trial: Trial) -> None:
    a = trial.draw(choice(_drawn, _chained, _chained, _dense, _long))(trial)
    found, e = merges(trial, a)
    words = [_bytes(text) for text in a["texts"]]
    for k, pair in enumerate(found):
        before, best = found[:k], most_frequent(words)
        said = f"{e}[:{k}] != {before!r} or {e}[{k}] in {best!r}"
        trial.require(pair in best, f"merge {k} is {pair}, though {best} are the most frequent pairs", said)
        words = [merged(word, pair) for word in words]
    left = max(pair_counts(words).values(), default=0)
    done = len(found) == a["num_merges"] or left < 2
    said = f"{e} != {found!r} or {done}"
    trial.require(done, f"{len(found)} merges are learned, though a pair is left that occurs {left} times", said)


def _bytes(text: str) -> list[bytes]:
    return [bytes([byte]) for byte in text.encode()]


def _order(trial: Trial) -> None:
    a, rng = draw_clear_texts(trial), rng_of(trial)
    twice = [a["texts"][i] for i in rng.permutation(np.repeat(np.arange(len(a["texts"])), 2))]
    wanted = bpe_train(a["texts"], a["num_merges"])
    same(trial, *merges(trial, a), wanted, "the merges")
    same(trial, *merges(trial, {**a, "texts": twice}), wanted, "the merges of the texts in another order, twice each")


def _prefix(trial: Trial) -> None:
    a = draw_clear_texts(trial)
    fewer = int(rng_of(trial).integers(0, a["num_merges"] + 1))
    wanted = bpe_train(a["texts"], a["num_merges"])
    same(trial, *merges(trial, a), wanted, "the merges")
    same(trial, *merges(trial, {**a, "num_merges": fewer}), wanted[:fewer], "fewer merges")


_LETTERS = "abcdefgh"


def _renaming(trial: Trial) -> None:
    a = draw_clear_texts(trial, "abcd", "abcdef", "abc")
    others = dict(zip(_LETTERS, rng_of(trial).permutation(list(_LETTERS)).tolist(), strict=True))
    renamed = {**a, "texts": ["".join(others[letter] for letter in text) for text in a["texts"]]}
    wanted = bpe_train(a["texts"], a["num_merges"])
    same(trial, *merges(trial, a), wanted, "the merges")
    table = bytes.maketrans(_LETTERS.encode(), "".join(others.values()).encode())
    moved = [(left.translate(table), right.translate(table)) for left, right in wanted]
    same(trial, *merges(trial, renamed), moved, "the merges of other letters")


def _nothing(trial: Trial) -> None:
    texts = trial.draw(choice((), ("",), ("", "a", "b"), ("ab", "ab")))
    n = 0 if "ab" in texts else trial.draw(choice(3, 0, 1))
    same(trial, *merges(trial, {"texts": list(texts), "num_merges": n}), [], "what is learned from nothing")


def _numpy_numbers(trial: Trial) -> None:
    a = draw_clear_texts(trial)
    wanted = bpe_train(a["texts"], a["num_merges"])
    same(trial, *merges(trial, {**a, "num_merges": np.int64(a["num_merges"])}), wanted, "the merges")


def _encoded(trial: Trial) -> None:
    pieces(trial, draw_encoding(trial), bytes)
    same(trial, *pieces(trial, {"text": "", "merges": [(b"a", b"b")]}, bytes), [], "the pieces of the empty text")


def _encoding(trial: Trial) -> None:
    a = trial.draw(choice(draw_encoding, draw_encoding, draw_long_encoding, draw_many_places))(trial)
    same(trial, *pieces(trial, a, bytes), bpe_encode(a["text"], a["merges"]), "the pieces")


def _lossless(trial: Trial) -> None:
    a = draw_encoding(trial)
    found, e = pieces(trial, a, bytes)
    same(trial, b"".join(found), f"b''.join({e})", a["text"].encode(), "what the pieces join to")


def _in_turn(trial: Trial) -> None:
    """Merges up to the first that makes what another has made: that could be joined by earlier ones again."""
    drawn = draw_encoding(trial)
    made = [left + right for left, right in drawn["merges"]]
    fresh = next((i for i, piece in enumerate(made) if piece in made[:i]), len(made))
    a = {**drawn, "merges": drawn["merges"][:fresh]}
    wanted = _bytes(a["text"])
    for pair in a["merges"]:
        wanted = merged(wanted, pair)
    same(trial, *pieces(trial, a, bytes), wanted, "the pieces")


def _exhausted(trial: Trial) -> None:
    a = draw_encoding(trial)
    found, e = pieces(trial, a, bytes)
    left = sorted(set(pairwise(found)) & set(a["merges"]))
    said = f"not set(zip({e}, {e}[1:])) & set({a['merges']!r})"
    trial.require(not left, f"{left} are left unmerged", said)
    known = {left + right for left, right in a["merges"]}
    strange = [piece for piece in found if len(piece) > 1 and piece not in known]
    said = f"all(len(piece) == 1 or piece in {sorted(known)!r} for piece in {e})"
    trial.require(not strange, f"{strange} were never learned", said)
    same(trial, b"".join(found), f"b''.join({e})", a["text"].encode(), "what the pieces join to")


def _runs(trial: Trial) -> None:
    n, letter = trial.draw(choice(5, 3, 4, 2, 7, 8, 11)), trial.draw(choice("a", " "))
    b = letter.encode()
    ladder = [(b, b), (2 * b, 2 * b), (4 * b, 4 * b)]
    merges_ = ladder[: trial.draw(choice(1, 2, 3))]
    wanted = [b] * n
    for pair in merges_:
        wanted = merged(wanted, pair)
    same(trial, *pieces(trial, {"text": letter * n, "merges": merges_}, bytes), wanted, "the pieces of a run")


def _duplicates(trial: Trial) -> None:
    a = draw_encoding(trial)
    again = rng_of(trial).permutation(len(a["merges"])).tolist()
    longer = {**a, "merges": [*a["merges"], *(a["merges"][i] for i in again)]}
    same(trial, *pieces(trial, longer, bytes), bpe_encode(a["text"], a["merges"]), "the pieces")


_LAWS: dict[str, Any] = {
    "bpe_train.contract": _learned,
    "bpe_train.equation": _training,
    "bpe_train.most_frequent": _most_frequent,
    "bpe_train.order": _order,
    "bpe_train.prefix": _prefix,
    "bpe_train.renaming": _renaming,
    "bpe_train.nothing": _nothing,
    "bpe_train.purity": lambda trial: unchanged(trial, _drawn(trial), "texts"),
    "bpe_train.numpy_numbers": _numpy_numbers,
    "bpe_encode.contract": _encoded,
    "bpe_encode.equation": _encoding,
    "bpe_encode.lossless": _lossless,
    "bpe_encode.in_turn": _in_turn,
    "bpe_encode.exhausted": _exhausted,
    "bpe_encode.runs": _runs,
    "bpe_encode.duplicates": _duplicates,
    "bpe_encode.purity": lambda trial: unchanged(trial, draw_encoding(trial), "merges"),
}

CHECKS = tuple(check(slug, body, dtypes=ONE, effort=2) for slug, body in _LAWS.items())
