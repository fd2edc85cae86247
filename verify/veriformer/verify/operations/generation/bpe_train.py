"""Training of byte-pair encoding: its record and its laws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from veriformer.spec.language.bpe import bpe_train, merged, pair_counts
from veriformer.verify.judging.op_info import InvalidCall, OpInfo
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.family import check
from veriformer.verify.operations.generation.texts import (
    ONE,
    draw_long_text,
    draw_text,
    merges,
    most_frequent,
    rng_of,
    same,
    single_bytes,
    unchanged,
)
from veriformer.verify.strategies import choice

_ALPHABETS = ("abc", "abcd", "ab", "ab c", "aAb", "aé", "ae\u0301 ", "a\r\n", "中文a", "🙂é ", "a")


def draw_texts(trial: Trial) -> tuple[np.random.Generator, str, list[str]]:
    """Draw a few texts in one alphabet."""
    rng, letters = rng_of(trial), trial.draw(choice(*_ALPHABETS))
    return rng, letters, [draw_text(rng, letters, 8) for _ in range(rng.integers(1, 5))]


def draw_clear_texts(trial: Trial, *alphabets: str) -> Arguments:
    """Draw texts in which every merge that is asked for is the only most frequent pair, without runs of a piece."""
    rng, letters = rng_of(trial), trial.draw(choice(*(alphabets or ("abcd", "ab cd", "aAbcB", "aébc", "abc", "中文a"))))
    for _ in range(30):
        words = ["".join(rng.choice(list(letters), int(rng.integers(2, 6)))) for _ in range(rng.integers(2, 5))]
        texts = [word for word in words for _ in range(rng.choice([1, 2, 3, 5, 7]))]
        if clear := clear_merges(texts):
            return {"texts": rng.permutation(texts).tolist(), "num_merges": int(rng.integers(1, clear + 1))}
    return {"texts": ["abc", "ab"], "num_merges": 1}


def clear_merges(texts: Sequence[str]) -> int:
    """Return the number of determined merges: each the only most frequent pair, met twice, without a run."""
    pieces = [[bytes([byte]) for byte in text.encode()] for text in texts]
    found = 0
    while found < 8 and not any(a == b for word in pieces for a, b in pairwise(word)):
        first, second = ([*pair_counts(pieces).most_common(2), (None, 0), (None, 0)])[:2]
        if first[0] is None or first[1] < 2 or first[1] == second[1]:
            break
        pieces = [merged(word, first[0]) for word in pieces]
        found += 1
    return found


def _trained(trial: Trial) -> Arguments:
    return {"texts": draw_texts(trial)[2], "num_merges": 4}


def _bad_training(trial: Trial) -> Iterator[InvalidCall]:
    good = _trained(trial)
    yield InvalidCall("no texts", {**good, "texts": None}, ("texts",))
    yield InvalidCall("a text that is none", {**good, "texts": ["ab", None]}, ("texts",))
    for n, what in ((-1, "negative"), (True, "a bool"), (None, "missing"), (1.5, "no integer")):
        yield InvalidCall(f"a number of merges that is {what}", {**good, "num_merges": n}, ("num_merges",))


BPE_TRAIN = OpInfo(name="bpe_train", sample=_trained, sample_basic=_trained, invalid_calls=_bad_training, dtypes=ONE)


def _drawn(trial: Trial) -> Arguments:
    rng, _, texts = draw_texts(trial)
    return {"texts": texts, "num_merges": int(rng.integers(0, 7))}


def _learned(trial: Trial) -> None:
    merges(trial, _drawn(trial))


def _training(trial: Trial) -> None:
    a = draw_clear_texts(trial)
    same(trial, *merges(trial, a), bpe_train(a["texts"], a["num_merges"]), "the merges")


def _long(trial: Trial) -> Arguments:
    """Draw a long text, given more than once, and merges enough to make it one piece."""
    rng = rng_of(trial)
    text = draw_long_text(rng, 72)
    return {"texts": [text] * int(rng.integers(2, 4)), "num_merges": len(text.encode())}


def _dense(trial: Trial) -> Arguments:
    """Draw a text of few letters and merges enough that pieces end and begin like others."""
    rng = rng_of(trial)
    text = "".join(rng.choice(list("abcd"), int(rng.integers(60, 201))))
    return {"texts": [text], "num_merges": int(rng.integers(12, 21))}


def _chained(trial: Trial) -> Arguments:
    """Draw words from one chain of letters: a merge lowers the counts beside it, which may stay the largest."""
    rng = rng_of(trial)
    starts = rng.integers(0, 4, int(rng.integers(3, 8)))
    texts = ["abcdef"[i : i + rng.integers(2, 5)] for i in starts for _ in range(rng.integers(1, 6))]
    return {"texts": texts, "num_merges": int(rng.integers(2, 6))}


def _most_frequent(trial: Trial) -> None:
    a = trial.draw(choice(_drawn, _chained, _chained, _dense, _long))(trial)
    found, e = merges(trial, a)
    words = [single_bytes(text) for text in a["texts"]]
    for k, pair in enumerate(found):
        before, best = found[:k], most_frequent(words)
        said = f"{e}[:{k}] != {before!r} or {e}[{k}] in {best!r}"
        trial.assert_true(pair in best, f"merge {k} is {pair}, though {best} are the most frequent pairs", said)
        words = [merged(word, pair) for word in words]
    left = max(pair_counts(words).values(), default=0)
    done = len(found) == a["num_merges"] or left < 2
    said = f"{e} != {found!r} or {done}"
    trial.assert_true(done, f"{len(found)} merges are learned, though a pair is left that occurs {left} times", said)


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


_LAWS: dict[str, Any] = {
    "contract": _learned,
    "equation": _training,
    "most_frequent": _most_frequent,
    "order": _order,
    "prefix": _prefix,
    "renaming": _renaming,
    "nothing": _nothing,
    "purity": lambda trial: unchanged(trial, _drawn(trial), "texts"),
    "numpy_numbers": _numpy_numbers,
}

CHECKS = tuple(check(f"bpe_train.{name}", body, dtypes=ONE, effort=2) for name, body in _LAWS.items())
