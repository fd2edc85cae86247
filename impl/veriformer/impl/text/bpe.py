"""Byte-pair encoding: join the most frequent neighbours, again and again."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from veriformer.impl import checks

Pair = tuple[bytes, bytes]


def bpe_train(texts: Sequence[str], num_merges: int) -> list[Pair]:
    """Learn merges: again and again the most frequent pair of neighbours, which is then joined everywhere.

    Texts are sequences of UTF-8 bytes and are not split any further. Overlapping pairs all count, so `aaa` holds `aa`
    twice; of equally frequent pairs the first one met is taken. Fewer than `num_merges` are learned when no pair is
    left.

    Returns the pairs of byte strings in the order in which they were learned. Raises `ValueError` for a negative number
    of merges, `TypeError` if `texts` is not a sequence of strings (one string is none). Sennrich et al. (2016), on
    bytes as in GPT-2.
    """
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        checks.raise_for("texts", "a list of strings", type(texts).__name__, "put texts into a list", TypeError)
    words = Counter(tuple(_bytes(f"texts[{i}]", text)) for i, text in enumerate(texts))
    merges: list[Pair] = []
    for _ in range(checks.integer("num_merges", num_merges, minimum=0)):
        counts: Counter[Pair] = Counter()
        for word, times in words.items():
            for pair in pairwise(word):
                counts[pair] += times
        if not counts:
            break
        merges.append(max(counts, key=counts.__getitem__))
        words = _rewritten(words, merges[-1])
    return merges


def bpe_encode(text: str, merges: Sequence[Pair]) -> list[bytes]:
    """Cut a text into pieces: while any merge applies, the one learned first is made everywhere, left to right.

    The pieces join to the UTF-8 bytes of the text; a pair that is listed twice has its first rank. Raises `TypeError`
    if `text` is not a string, or `merges` not a sequence of pairs of byte strings.
    """
    pieces = _bytes("text", text)
    ranks = _ranks(merges)
    while known := ranks.keys() & set(pairwise(pieces)):
        pieces = _joined(pieces, min(known, key=ranks.__getitem__))
    return pieces


def _rewritten(words: Counter[tuple[bytes, ...]], pair: Pair) -> Counter[tuple[bytes, ...]]:
    return Counter({tuple(_joined(word, pair)): times for word, times in words.items()})


def _joined(pieces: Sequence[bytes], pair: Pair) -> list[bytes]:
    """Join every occurrence of the pair, found from left to right without overlap."""
    joined, i = [], 0
    while i < len(pieces):
        met = tuple(pieces[i : i + 2]) == pair
        joined.append(pieces[i] + pieces[i + 1] if met else pieces[i])
        i += 2 if met else 1
    return joined


def _ranks(merges: Sequence[Pair]) -> dict[Pair, int]:
    if isinstance(merges, str | bytes) or not isinstance(merges, Iterable):
        checks.raise_for("merges", "a list of pairs", type(merges).__name__, "pass what bpe_train returns", TypeError)
    ranks: dict[Pair, int] = {}
    for rank, pair in enumerate(merges):
        if not isinstance(pair, tuple | list) or [type(part) for part in pair] != [bytes, bytes]:
            checks.raise_for(
                f"merges[{rank}]", "two byte strings", repr(pair), "pass what bpe_train returns", TypeError
            )
        ranks.setdefault((pair[0], pair[1]), rank)
    return ranks


def _bytes(name: str, text: object) -> list[bytes]:
    if not isinstance(text, str):
        checks.raise_for(name, "a string", type(text).__name__, "decode it first", TypeError)
    return [bytes([byte]) for byte in text.encode()]
