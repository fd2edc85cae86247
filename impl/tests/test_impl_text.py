"""Byte-pair encoding and unigram segmentation, against every cut of small texts."""

import itertools
import math

import pytest

from veriformer.impl import bpe_encode, bpe_train, unigram_segment


def test_merges_are_learned_by_frequency():
    assert bpe_train(["abab", "abc"], 2) == [(b"a", b"b"), (b"ab", b"ab")]
    assert bpe_train(["aaa", "bc", "bc", "bc"], 1) == [(b"b", b"c")]
    assert bpe_train(["aaaa", "bc", "bc"], 1) == [(b"a", b"a")]  # overlapping pairs count: three
    assert bpe_train(["", "a"], 5) == []


def test_a_merge_is_made_everywhere_by_rank_and_from_the_left():
    assert bpe_encode("aaaaa", [(b"a", b"a")]) == [b"aa", b"aa", b"a"]
    assert bpe_encode("abc", [(b"b", b"c"), (b"a", b"b")]) == [b"a", b"bc"]
    assert bpe_encode("abab", [(b"a", b"b"), (b"ab", b"ab"), (b"a", b"b")]) == [b"abab"]
    assert bpe_encode("", [(b"a", b"b")]) == []


def test_characters_are_cut_into_bytes():
    assert bpe_encode("é", []) == ["é".encode()[:1], "é".encode()[1:]]
    text = "naïve 中文 🙂"
    assert b"".join(bpe_encode(text, bpe_train([text * 3], 7))).decode() == text


TABLE = {"a": -1.0, "b": -1.5, "ab": -2.75, "ba": -1.75, "aba": -3.0, "bb": -math.inf}


def cuts(text):
    if not text:
        yield []
    for end in range(1, len(text) + 1):
        yield from ([text[:end], *rest] for rest in cuts(text[end:]))


@pytest.mark.parametrize("text", ["".join(t) for n in range(1, 6) for t in itertools.product("ab", repeat=n)])
def test_the_best_of_all_cuts_is_found(text):
    def total(cut):
        return sum(TABLE.get(piece, -math.inf) for piece in cut)

    found = unigram_segment(text, TABLE)
    assert "".join(found) == text
    assert total(found) == max(map(total, cuts(text)))


def test_empty_and_impossible_texts():
    assert unigram_segment("", {}) == []
    with pytest.raises(ValueError, match=r"^text: expected one"):
        unigram_segment("abc", TABLE)
    assert unigram_segment("日本", {"日": -1.0, "本": -1.0}) == ["日", "本"]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: bpe_train("text", 1), "texts"),
        (lambda: bpe_train(["a", None], 1), r"texts\[1\]"),
        (lambda: bpe_train(["a"], -1), "num_merges"),
        (lambda: bpe_encode(b"a", []), "text"),
        (lambda: bpe_encode("a", [("a", "b")]), r"merges\[0\]"),
        (lambda: unigram_segment(None, {}), "text"),
        (lambda: unigram_segment("a", ["a"]), "log_probs"),
        (lambda: unigram_segment("a", {"a": None}), "log_probs"),
    ],
)
def test_bad_input_is_refused_by_name(call, name):
    with pytest.raises((ValueError, TypeError), match=f"^{name}"):
        call()
