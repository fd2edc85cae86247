"""Byte-pair encoding: its record and its laws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import numpy as np

from veriformer.spec.language.bpe import Pair, bpe_encode, merged
from veriformer.verify.judging.op_info import InvalidCall, OpInfo
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.family import check
from veriformer.verify.operations.generation.texts import (
    ONE,
    draw_long_text,
    draw_text,
    most_frequent,
    pieces,
    rng_of,
    same,
    single_bytes,
    unchanged,
)
from veriformer.verify.strategies import choice, extent


def draw_encoding(trial: Trial) -> Arguments:
    """Draw merges as training can produce them, enough to build on one another, and a text in the same letters."""
    rng, letters = rng_of(trial), trial.draw(choice("ab", "abc", "a b", "aé", "ae\u0301", "🙂a", "a", "a\r\n", "ab A"))
    texts = [draw_text(rng, letters, 6) for _ in range(rng.integers(1, 13))]
    merges = _learned(rng, texts, trial.draw(st.integers(0, 20)))
    return {"text": "".join(rng.choice(list(letters), trial.draw(st.integers(0, 24)))), "merges": merges}


def draw_long_encoding(trial: Trial) -> Arguments:
    """Draw a text that says some hundred letters again and again, and merges enough to make one piece of these."""
    rng = rng_of(trial)
    text = draw_long_text(rng, 130)
    return {"text": trial.draw(extent(2, 20)) * text, "merges": _learned(rng, [text], len(text.encode()))}


def draw_many_places(trial: Trial) -> Arguments:
    """Draw a text of some thousand letters and few merges, each of them made in very many places."""
    rng = rng_of(trial)
    text = "".join(rng.choice(["ab", "abc", "ab", "b"], 2000))
    return {"text": text, "merges": _learned(rng, [text[:60]], int(rng.integers(1, 4)))}


def _learned(rng: np.random.Generator, texts: Sequence[str], num_merges: int) -> list[Pair]:
    """Draw merges, each of a most frequent pair, any of those that tie."""
    words, merges = [[bytes([byte]) for byte in text.encode()] for text in texts], list[Pair]()
    while len(merges) < num_merges and (best := most_frequent(words)):
        merges.append(best[rng.integers(0, len(best))])
        words = [merged(word, merges[-1]) for word in words]
    return merges


def _bad_encoding(trial: Trial) -> Iterator[InvalidCall]:
    good = draw_encoding(trial)
    yield InvalidCall("no text", {**good, "text": None}, ("text",))
    yield InvalidCall("no merges", {**good, "text": "ab", "merges": None}, ("merges",))


BPE_ENCODE = OpInfo(
    name="bpe_encode", sample=draw_encoding, sample_basic=draw_encoding, invalid_calls=_bad_encoding, dtypes=ONE
)


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
    """Check merges up to the first that makes a piece made before, which earlier merges could join again."""
    drawn = draw_encoding(trial)
    made = [left + right for left, right in drawn["merges"]]
    fresh = next((i for i, piece in enumerate(made) if piece in made[:i]), len(made))
    a = {**drawn, "merges": drawn["merges"][:fresh]}
    wanted = single_bytes(a["text"])
    for pair in a["merges"]:
        wanted = merged(wanted, pair)
    same(trial, *pieces(trial, a, bytes), wanted, "the pieces")


def _exhausted(trial: Trial) -> None:
    a = draw_encoding(trial)
    found, e = pieces(trial, a, bytes)
    left = sorted(set(pairwise(found)) & set(a["merges"]))
    said = f"not set(zip({e}, {e}[1:])) & set({a['merges']!r})"
    trial.assert_true(not left, f"{left} are left unmerged", said)
    known = {left + right for left, right in a["merges"]}
    strange = [piece for piece in found if len(piece) > 1 and piece not in known]
    said = f"all(len(piece) == 1 or piece in {sorted(known)!r} for piece in {e})"
    trial.assert_true(not strange, f"{strange} were never learned", said)
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
    "contract": _encoded,
    "equation": _encoding,
    "lossless": _lossless,
    "in_turn": _in_turn,
    "exhausted": _exhausted,
    "runs": _runs,
    "duplicates": _duplicates,
    "purity": lambda trial: unchanged(trial, draw_encoding(trial), "merges"),
}

CHECKS = tuple(check(f"bpe_encode.{name}", body, dtypes=ONE, effort=2) for name, body in _LAWS.items())
