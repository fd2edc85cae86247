"""Byte-pair encoding and unigram segmentation as records: they have no dtype, and get one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np

from veriformer.spec.language.bpe import Pair, merged, pair_counts
from veriformer.verify.operation import Operation, Refusal
from veriformer.verify.strategies import choice, seeds
from veriformer.verify.trial import Arguments, Trial

ONE = ("fp32",)
"""The dtype of what has none."""

_ALPHABETS = ("abc", "abcd", "ab", "ab c", "aAb", "aé", "ae\u0301 ", "a\r\n", "中文a", "🙂é ", "a")


def rng_of(trial: Trial) -> np.random.Generator:
    """A generator for texts."""
    return np.random.default_rng(trial.draw(seeds()))


def draw_text(rng: np.random.Generator, letters: str, longest: int) -> str:
    """A text, sometimes empty, sometimes with runs."""
    drawn = rng.choice(list(letters), int(rng.integers(0, longest + 1)))
    return "".join(np.repeat(drawn, rng.choice([1, 1, 1, 2, 3], drawn.shape))) if drawn.size else ""


def draw_long_text(rng: np.random.Generator, length: int) -> str:
    """A text in many letters, line ends of two characters among them; it may begin with a byte order mark."""
    letters = ("\r\n", *"abcdefgh .éﬁ")
    return "".join([*rng.choice(["\ufeff", "a"], 1), *rng.choice(letters, length)])


def draw_texts(trial: Trial) -> tuple[np.random.Generator, str, list[str]]:
    """A few texts in one alphabet."""
    rng, letters = rng_of(trial), trial.draw(choice(*_ALPHABETS))
    return rng, letters, [draw_text(rng, letters, 8) for _ in range(rng.integers(1, 5))]


def draw_clear_texts(trial: Trial, *alphabets: str) -> Arguments:
    """Texts in which every merge that is asked for is the only most frequent pair, without runs of a piece."""
    rng, letters = rng_of(trial), trial.draw(choice(*(alphabets or ("abcd", "ab cd", "aAbcB", "aébc", "abc", "中文a"))))
    for _ in range(30):
        words = ["".join(rng.choice(list(letters), int(rng.integers(2, 6)))) for _ in range(rng.integers(2, 5))]
        texts = [word for word in words for _ in range(rng.choice([1, 2, 3, 5, 7]))]
        if clear := clear_merges(texts):
            return {"texts": rng.permutation(texts).tolist(), "num_merges": int(rng.integers(1, clear + 1))}
    return {"texts": ["abc", "ab"], "num_merges": 1}


def clear_merges(texts: Sequence[str]) -> int:
    """How many merges are determined: each the only most frequent pair, met twice at least, and no run anywhere."""
    pieces = [[bytes([byte]) for byte in text.encode()] for text in texts]
    found = 0
    while found < 8 and not any(a == b for word in pieces for a, b in pairwise(word)):
        first, second = ([*pair_counts(pieces).most_common(2), (None, 0), (None, 0)])[:2]
        if first[0] is None or first[1] < 2 or first[1] == second[1]:
            break
        pieces = [merged(word, first[0]) for word in pieces]
        found += 1
    return found


def draw_encoding(trial: Trial) -> Arguments:
    """Merges as training can produce them, enough to build on one another, and a text in the same letters."""
    rng, letters = rng_of(trial), trial.draw(choice("ab", "abc", "a b", "aé", "ae\u0301", "🙂a", "a", "a\r\n", "ab A"))
    texts = [draw_text(rng, letters, 6) for _ in range(rng.integers(1, 13))]
    merges = _learned(rng, texts, trial.draw(st.integers(0, 20)))
    return {"text": "".join(rng.choice(list(letters), trial.draw(st.integers(0, 24)))), "merges": merges}


def draw_long_encoding(trial: Trial) -> Arguments:
    """A text of some hundred letters that says the same three times, and merges enough to make that one piece."""
    rng = rng_of(trial)
    text = draw_long_text(rng, 130)
    return {"text": 3 * text, "merges": _learned(rng, [text], len(text.encode()))}


def draw_many_places(trial: Trial) -> Arguments:
    """A text of some thousand letters and few merges, each of them made in very many places."""
    rng = rng_of(trial)
    text = "".join(rng.choice(["ab", "abc", "ab", "b"], 2000))
    return {"text": text, "merges": _learned(rng, [text[:60]], int(rng.integers(1, 4)))}


def _learned(rng: np.random.Generator, texts: Sequence[str], num_merges: int) -> list[Pair]:
    """Merges of which each is a most frequent pair, any of those that tie."""
    words, merges = [[bytes([byte]) for byte in text.encode()] for text in texts], list[Pair]()
    while len(merges) < num_merges and (best := most_frequent(words)):
        merges.append(best[rng.integers(0, len(best))])
        words = [merged(word, merges[-1]) for word in words]
    return merges


def most_frequent(words: Sequence[Sequence[bytes]]) -> list[Pair]:
    """The pairs that no other exceeds in number."""
    counts = pair_counts(words)
    most = max(counts.values(), default=0)
    return [pair for pair, n in counts.items() if n == most]


def draw_segmentation(trial: Trial, *, longest: int = 7) -> Arguments:
    """A text, and pieces with log-probabilities whose sums are exact; each character is a piece."""
    rng, letters = rng_of(trial), trial.draw(choice("ab", "abc", "a", "中é", "a🙂", "a ", "e\u0301ﬁ"))
    text = draw_text(rng, letters, longest)[:longest]
    return {"text": text, "log_probs": _table(rng, letters, text)}


def _table(rng: np.random.Generator, letters: str, text: str) -> dict[str, float]:
    """Pieces of up to six letters in no order, some forbidden; ties of up to all cuts, or what only fp64 tells apart.

    Sums are exact in fp64 as long as none exceeds 2^14.
    """
    source = text + "".join(rng.choice(list(letters), 6))
    places = rng.integers(0, len(source) - 1, rng.integers(0, 14))
    pieces = sorted({*letters, *(source[i : i + rng.integers(2, 7)] for i in places)})
    spread = int(rng.choice([0, 0, 2, 64, 8000]))
    table = dict[str, float]()
    for i in rng.permutation(len(pieces)):
        eighths, rest = (int(rng.integers(0, n)) for n in (spread * len(pieces[i]) + 1, 4))
        forbidden = len(pieces[i]) > 1 and rng.random() < 0.15
        table[pieces[i]] = -math.inf if forbidden else -(len(pieces[i]) + eighths) / 8 - rest * 2.0**-38
    return table


def _trained(trial: Trial) -> Arguments:
    return {"texts": draw_texts(trial)[2], "num_merges": 4}


def _bad_training(trial: Trial) -> Iterator[Refusal]:
    good = _trained(trial)
    yield Refusal("no texts", {**good, "texts": None}, ("texts",))
    yield Refusal("a text that is none", {**good, "texts": ["ab", None]}, ("texts",))
    for n, what in ((-1, "negative"), (True, "a bool"), (None, "missing"), (1.5, "no integer")):
        yield Refusal(f"a number of merges that is {what}", {**good, "num_merges": n}, ("num_merges",))


def _bad_encoding(trial: Trial) -> Iterator[Refusal]:
    good = draw_encoding(trial)
    yield Refusal("no text", {**good, "text": None}, ("text",))
    yield Refusal("no merges", {**good, "text": "ab", "merges": None}, ("merges",))


def _bad_segmentation(trial: Trial) -> Iterator[Refusal]:
    a = draw_segmentation(trial)
    table = a["log_probs"]
    yield Refusal("an unknown letter", {**a, "text": a["text"] + "z"}, ("text", "log_probs"))
    yield Refusal("a text before an unknown letter", {**a, "text": "z" + a["text"]}, ("text", "log_probs"))
    yield Refusal("an empty table", {"text": "a", "log_probs": {}}, ("text", "log_probs"))
    forbidden = {**{k: v for k, v in table.items() if "z" not in k}, "z": -math.inf}
    yield Refusal("a forbidden letter", {"text": "z", "log_probs": forbidden}, ("text", "log_probs"))
    yield Refusal("no text", {**a, "text": None}, ("text",))
    yield Refusal("no table", {"text": "a", "log_probs": None}, ("log_probs",))


BPE_TRAIN = Operation(name="bpe_train", draw=_trained, ordinary=_trained, refusals=_bad_training, dtypes=ONE)
BPE_ENCODE = Operation(
    name="bpe_encode", draw=draw_encoding, ordinary=draw_encoding, refusals=_bad_encoding, dtypes=ONE
)
UNIGRAM_SEGMENT = Operation(
    name="unigram_segment", draw=draw_segmentation, ordinary=draw_segmentation, refusals=_bad_segmentation, dtypes=ONE
)
