"""Draws of texts, and the results of operations on them: lists of pieces, and verdicts that a script can repeat.

Byte-pair encoding and unigram segmentation share them; they have one dtype, since texts have none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from veriformer.spec.language.bpe import Pair, pair_counts
from veriformer.verify.judging.trial import Arguments, Trial
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


def single_bytes(text: str) -> list[bytes]:
    """Return the bytes of a text, one by one."""
    return [bytes([byte]) for byte in text.encode()]


def pieces(trial: Trial, arguments: Arguments, kind: type) -> tuple[list[Any], str]:
    """Return the pieces of a call's result, and their expression. Raises Violation unless they are such a list."""
    outcome = trial.call(arguments)
    e, value = outcome.name, outcome.value
    right = isinstance(value, list) and all(isinstance(piece, kind) and piece for piece in value)
    said = f"isinstance({e}, list) and all(isinstance(piece, {kind.__name__}) and piece for piece in {e})"
    trial.assert_true(right, f"the result is no list of {kind.__name__} with something in each", said)
    return value, e


def merges(trial: Trial, arguments: Arguments) -> tuple[list[tuple[bytes, bytes]], str]:
    """Return the merges that training learned, and their expression. Raises Violation for other than byte pairs."""
    outcome = trial.call(arguments)
    e, value = outcome.name, outcome.value
    listed = f"[tuple(pair) for pair in {e}]"
    right = isinstance(value, list) and all(_is_pair(pair) for pair in value)
    said = (
        f"isinstance({e}, list) and all(isinstance(pair, (tuple, list)) and len(pair) == 2 and "
        f"all(isinstance(part, bytes) and part for part in pair) for pair in {e})"
    )
    trial.assert_true(right, "the result is no list of pairs of byte strings", said)
    n = int(arguments["num_merges"])
    trial.assert_true(len(value) <= n, f"{len(value)} merges are learned instead of {n}", f"len({e}) <= {n}")
    return [(pair[0], pair[1]) for pair in value], listed


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(x, bytes) and x for x in pair)


def same(trial: Trial, value: Any, expression: str, expected: Any, what: str) -> None:
    """Raise Violation unless a value is the one expected."""
    said = f"{what}: {value!r} instead of {expected!r}"
    trial.assert_true(value == expected, said, f"{expression} == {expected!r}", about=what)


def unchanged(trial: Trial, arguments: Arguments, name: str) -> None:
    """Raise Violation where a call modifies the list or the dict that it is given under this name."""
    given = arguments[name]
    copy: Any = dict(given) if isinstance(given, dict) else list(given)
    outcome = trial.raw(arguments, {**arguments, name: copy})
    order = list(copy.items()) if isinstance(copy, dict) else copy
    before = list(given.items()) if isinstance(given, dict) else list(given)
    literal = repr(given)
    call = ", ".join("x" if key == name else repr(value) for key, value in arguments.items())
    said = f"(lambda x: (target.{trial.operation}({call}), x)[1])({literal}) == {literal}"
    trial.assert_true(order == before, f"{name} was modified", said)
    trial.assert_true(outcome.value is not copy, f"{name} itself is returned", "True")


def total(cut: list[str], table: dict[str, float]) -> float:
    """Return the log-probability of a cut; −∞ where a piece is unknown or forbidden."""
    return math.fsum(table.get(piece, -math.inf) for piece in cut) if cut else 0.0
