"""Unigram segmentation: the most probable way to cut a text into known pieces."""

import math
from collections.abc import Mapping

from veriformer.impl import checks


def unigram_segment(text: str, log_probs: Mapping[str, float]) -> list[str]:
    r"""Cut a text into pieces of the highest total log-probability, $\max \sum_i \log P(\tau_i)$.

    Viterbi's algorithm: the best cut of every prefix is the best cut of a shorter one and one piece more, so one score
    per prefix is enough. Positions are code points; −∞ forbids a piece; of equally good cuts the one with the longest
    last piece is returned.

    Returns the pieces, which join to the text; `""` has none. Raises `ValueError` if no pieces join to the text,
    `TypeError` for wrong types. Kudo (2018); documents 000 and 001, section 11.3.
    """
    if not isinstance(text, str):
        checks.raise_for("text", "a string", type(text).__name__, "decode it first", TypeError)
    vocabulary = _checked(log_probs)
    longest = max(map(len, vocabulary), default=0)
    best = [0.0] + [-math.inf] * len(text)  # by the end of the prefix
    start_of_last = [0] * (len(text) + 1)
    for end in range(1, len(text) + 1):
        for start in range(max(0, end - longest), end):
            score = best[start] + vocabulary.get(text[start:end], -math.inf)
            if score > best[end]:
                best[end], start_of_last[end] = score, start
    if best[-1] == -math.inf:
        checks.raise_for("text", "one that pieces of log_probs join to", repr(text), "add its characters as pieces")
    return _traced(text, start_of_last)


def _traced(text: str, start_of_last: list[int]) -> list[str]:
    pieces, end = [], len(text)
    while end:
        pieces.append(text[start_of_last[end] : end])
        end = start_of_last[end]
    return pieces[::-1]


def _checked(log_probs: Mapping[str, float]) -> dict[str, float]:
    if not isinstance(log_probs, Mapping):
        checks.raise_for(
            "log_probs", "a mapping from pieces to numbers", type(log_probs).__name__, "pass a dict", TypeError
        )
    for piece in log_probs:
        if not isinstance(piece, str):
            checks.raise_for("log_probs", "pieces that are strings", repr(piece), "decode it first", TypeError)
    return {piece: checks.number(f"log_probs[{piece!r}]", value) for piece, value in log_probs.items()}
