"""Byte pairs and unigrams, by slower routes that look at every possibility, and at their edges."""

import math
from functools import cache

import numpy as np
import pytest

from veriformer.spec.language.bpe import bpe_encode, bpe_train, merged, pair_counts
from veriformer.spec.language.unigram_segment import unigram_segment

TEXTS = ["low lower lowest", "abracadabra", "naïve 🙂🙂", "aaaaa", "a", ""]


def encoded_by_text(text, merges):
    """By joining in a string of hexadecimal codes: each rule in turn, from the first again after every change."""
    pieces = [f"{byte:02x}" for byte in text.encode()]
    while True:
        for a, b in merges:
            a, b = a.hex(), b.hex()
            places = [k for k in range(len(pieces) - 1) if pieces[k] == a and pieces[k + 1] == b]
            if places:
                break
        else:
            return [bytes.fromhex(piece) for piece in pieces]
        k = 0
        while k < len(pieces) - 1:
            if pieces[k] == a and pieces[k + 1] == b:
                pieces[k : k + 2] = [a + b]
            k += 1


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("trained_on", TEXTS[:4])
def test_encoding_by_two_routes(text, trained_on):
    merges = bpe_train([trained_on], 6)
    assert bpe_encode(text, merges) == encoded_by_text(text, merges)
    assert b"".join(bpe_encode(text, merges)).decode() == text


def test_a_small_vocabulary_by_hand():
    merges = bpe_train(["abab", "abc", "xab"], 3)
    assert merges == [(b"a", b"b"), (b"ab", b"ab"), (b"ab", b"c")]
    assert bpe_encode("ababcab", merges) == [b"abab", b"c", b"ab"]
    assert bpe_encode("zab", merges) == [b"z", b"ab"]


def test_overlapping_pairs_count_and_are_joined_from_the_left():
    assert pair_counts([[b"a"] * 4])[b"a", b"a"] == 3
    assert merged([b"a"] * 5, (b"a", b"a")) == [b"aa", b"aa", b"a"]
    assert bpe_train(["aaaab"], 1) == [(b"a", b"a")]


def test_training_ends_when_no_pair_is_left():
    assert bpe_train(["abc"], 10) == [(b"a", b"b"), (b"ab", b"c")]
    assert bpe_train(["", "a"], 3) == bpe_train([], 3) == bpe_train(["abc"], 0) == []


def test_pairs_do_not_cross_texts():
    assert bpe_train(["ab", "cd"], 5) == [(b"a", b"b"), (b"c", b"d")]


def test_a_repeated_pair_keeps_its_first_rank():
    merges = [(b"a", b"b"), (b"b", b"c"), (b"a", b"b")]
    assert bpe_encode("abc", merges) == [b"ab", b"c"]
    assert bpe_encode("abc", merges[1:]) == [b"a", b"bc"]


def test_nothing_is_encoded_as_nothing():
    assert bpe_encode("", [(b"a", b"b")]) == []


def test_each_merge_of_a_longer_text_is_a_most_frequent_pair():
    text = "she sells sea shells by the sea shore"
    merges = bpe_train([text], 12)
    assert len(merges) == 12
    for k, pair in enumerate(merges):
        counts = pair_counts([bpe_encode(text, merges[:k])])
        assert counts[pair] == max(counts.values())


def best_score(text, table):
    """From the front, by recursion."""

    @cache
    def best(start):
        if start == len(text):
            return 0.0
        pieces = (text[start:end] for end in range(start + 1, len(text) + 1))
        return max((table.get(p, -math.inf) + best(start + len(p)) for p in pieces), default=-math.inf)

    return best(0)


def test_segmentation_by_two_routes():
    rng = np.random.default_rng(5)
    pieces = ["a", "b", "é", "ab", "bé", "aba", "ééb", "abab"]
    for _ in range(200):
        # Multiples of 1/8, so that sums are exact in any order.
        table = {piece: -float(rng.integers(0, 40)) / 8 for piece in pieces}
        text = "".join(rng.choice(list("abé"), size=int(rng.integers(0, 12))))
        found = unigram_segment(text, table)
        assert "".join(found) == text
        assert sum(table[piece] for piece in found) == best_score(text, table)


def test_what_cannot_be_segmented_is_refused():
    for table in ({}, {"a": -1.0}, {"a": -1.0, "b": -math.inf}):
        with pytest.raises(ValueError, match="text"):
            unigram_segment("ab", table)


def test_a_forbidden_piece_is_not_taken():
    table = {"a": -1.0, "b": -1.0, "ab": -math.inf}
    assert unigram_segment("ab", table) == ["a", "b"]
    assert unigram_segment("ab", {**table, "ab": -1.5}) == ["ab"]
    assert unigram_segment("", table) == []
