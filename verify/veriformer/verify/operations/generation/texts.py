"""Draws shared by byte-pair encoding and unigram segmentation: texts, and one dtype, since they have none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from veriformer.spec.language.bpe import Pair, pair_counts
from veriformer.verify.judging.trial import Trial
from veriformer.verify.strategies import seeds

ONE = ("fp32",)
"""The dtype of what has none."""


def rng_of(trial: Trial) -> np.random.Generator:
    """Draw a generator for texts."""
    return np.random.default_rng(trial.draw(seeds()))


def draw_text(rng: np.random.Generator, letters: str, longest: int) -> str:
    """Draw a text, sometimes empty, sometimes with runs."""
    drawn = rng.choice(list(letters), int(rng.integers(0, longest + 1)))
    return "".join(np.repeat(drawn, rng.choice([1, 1, 1, 2, 3], drawn.shape))) if drawn.size else ""


def draw_long_text(rng: np.random.Generator, length: int) -> str:
    """Draw a text in many letters, line ends of two characters among them; it may begin with a byte order mark."""
    letters = ("\r\n", *"abcdefgh .éﬁ")
    return "".join([*rng.choice(["\ufeff", "a"], 1), *rng.choice(letters, length)])


def most_frequent(words: Sequence[Sequence[bytes]]) -> list[Pair]:
    """Return the pairs that no other exceeds in number."""
    counts = pair_counts(words)
    most = max(counts.values(), default=0)
    return [pair for pair, n in counts.items() if n == most]
