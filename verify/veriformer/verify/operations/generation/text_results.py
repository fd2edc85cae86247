"""Results of text operations: lists of pieces, and verdicts that a script can repeat."""

from __future__ import annotations

import math
from typing import Any

from veriformer.verify.judging.trial import Arguments, Trial


def single_bytes(text: str) -> list[bytes]:
    """Return the bytes of a text, one by one."""
    return [bytes([byte]) for byte in text.encode()]


def pieces(trial: Trial, arguments: Arguments, kind: type) -> tuple[list[Any], str]:
    """The pieces that a call gives, and their expression. Raises Violation unless they are a list of this kind."""
    outcome = trial.call(arguments)
    e, value = outcome.name, outcome.value
    right = isinstance(value, list) and all(isinstance(piece, kind) and piece for piece in value)
    said = f"isinstance({e}, list) and all(isinstance(piece, {kind.__name__}) and piece for piece in {e})"
    trial.assert_true(right, f"the result is no list of {kind.__name__} with something in each", said)
    return value, e


def merges(trial: Trial, arguments: Arguments) -> tuple[list[tuple[bytes, bytes]], str]:
    """The merges that training gives, and their expression. Raises Violation unless they are pairs of byte strings."""
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
