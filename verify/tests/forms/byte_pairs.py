"""Byte-pair tokenizers as courses write them: trained to a size of the vocabulary, with merges of ids."""

import re
from collections import Counter
from itertools import pairwise


class BytePairTokenizer:
    def __init__(self):
        self.merges, self.vocab = {}, {i: bytes([i]) for i in range(256)}

    def parts(self, text):
        return [list(text.encode("utf-8"))]

    def joined(self, ids, pair, new):
        out = []
        for token in ids:
            if out and (out[-1], token) == pair:
                out[-1] = new
            else:
                out.append(token)
        return out

    def train(self, text, vocab_size, verbose=False):
        words = self.parts(text)
        self.merges, self.vocab = {}, {i: bytes([i]) for i in range(256)}
        for new in range(256, vocab_size):
            counts = Counter(pair for ids in words for pair in pairwise(ids))
            if not counts:
                break
            pair = self.best(counts)
            words = [self.joined(ids, pair, new) for ids in words]
            self.merges[pair], self.vocab[new] = new, self.vocab[pair[0]] + self.vocab[pair[1]]

    def best(self, counts):
        return max(counts, key=counts.get)

    def first(self, known):
        return min(known, key=self.merges.get)

    def encode(self, text):
        ids = list(text.encode("utf-8"))
        while known := [pair for pair in pairwise(ids) if pair in self.merges]:
            pair = self.first(known)
            ids = self.joined(ids, pair, self.merges[pair])
        return ids

    def decode(self, ids):
        return b"".join(self.vocab[i] for i in ids).decode("utf-8", errors="replace")


class FromTheLeft(BytePairTokenizer):
    """Takes the merge that applies first in the text instead of the one that was learned first."""

    def first(self, known):
        return known[0]


class OneShort(BytePairTokenizer):
    """Counts its merges from 257."""

    def train(self, text, vocab_size, verbose=False):
        super().train(text, vocab_size - 1)


class Longest(BytePairTokenizer):
    """Takes of the two most frequent pairs the one of larger ids."""

    def best(self, counts):
        return max(pair for pair, _ in counts.most_common(2))


class ByWords(BytePairTokenizer):
    """Takes text apart first, as GPT-2 does."""

    def parts(self, text):
        return [list(word.encode("utf-8")) for word in re.findall(r" ?\w+|[^\w\s]+|\s+", text)]


class OfTexts(BytePairTokenizer):
    """Learns from a list of texts."""

    def train(self, texts, num_merges):
        self.texts = texts
        super().train("", 256 + num_merges)

    def parts(self, text):
        return [list(one.encode("utf-8")) for one in self.texts]
