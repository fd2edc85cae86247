"""Formulas in LaTeX, read and evaluated: what is printed is compared with what was computed, at values of its letters.

How letters are named, and what they may stand for, is told in `latex_values`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import Any

from veriformer.spec.proofs.latex_parser import TYPESETTING, named, relations
from veriformer.spec.proofs.latex_values import Letters, UnreadableError, related, same


def stated(line: str, letters: Letters, values: Sequence[Any] = ()) -> bool:
    """Return whether all formulas of a line of words and formulas hold: relations are true, others give the values in
    turn.

    A relation after the word "if" must be true exactly where the one before it is. A letter that is a range stands for
    each of its numbers. A single letter only needs to be known.
    """
    ranges = {name: x for name, x in letters.items() if isinstance(x, range)}
    cases = (dict(zip(ranges, numbers, strict=True)) for numbers in product(*ranges.values()))
    return all(_stated(line, {**letters, **case}, list(values)) for case in cases)


def _stated(line: str, letters: Letters, values: list[Any]) -> bool:
    verdicts: list[bool] = []
    for word, formula in formulas(line):
        found = [(relation, read(letters)) for relation, read in relations(formula)]
        if len(found) > 1:
            verdict = all(related(relation, left, right) for (_, left), (relation, right) in pairwise(found))
            if values and (callable(values[0]) or isinstance(values[0], bool)):
                expected = values.pop(0)
                verdict = verdict is bool(expected(letters) if callable(expected) else expected)
        elif _SINGLE.fullmatch(_NOT_COMPUTING.sub("", formula)):
            verdict = True
        elif values:
            expected = values.pop(0)
            verdict = same(found[0][1], expected(letters) if callable(expected) else expected)
        else:
            raise UnreadableError(f"{formula}: nothing to compare it with")
        verdicts[-1:] = [verdicts[-1] == verdict] if word == "if" else [*verdicts[-1:], verdict]
    if values:
        raise UnreadableError(f"{line}: {len(values)} values too many")
    return all(verdicts)


_NOT_COMPUTING = re.compile(
    r"[_^]\{\\text\{[^{}]*\}\}|[_^]\{\([^)]*\)\}|\^[OQKV]\b|_\{[^{}]*\}|_\\?\w+|"
    r"\\(?:text|math[a-z]+|hat|bar|nabla)(?![a-zA-Z])|[{}]"
)
_SINGLE = re.compile(r" *\\?[A-Za-z]+'? *")


def formulas(line: str) -> Iterator[tuple[str, str]]:
    """Yield the formulas between the words of a line, each with the word before it, without punctuation."""
    for word, part in _between_words(TYPESETTING.sub(" ", line)):
        for piece in at_top(part):
            if formula := _RELATED_TO_WORDS.sub("", piece.strip(" .,;:")):
                yield word, formula


_RELATED_TO_WORDS = re.compile(r"^(?: |=|\\sim(?![a-zA-Z]))+")


def _between_words(line: str) -> Iterator[tuple[str, str]]:
    r"""Yield the words of each \text{…} that is in no brackets and names no function, with the part after it."""
    word, part, depth, i = "", "", 0, 0
    while i < len(line):
        text = _WORDS.match(line, i) if depth == 0 else None
        if text and not (text[2] and text[1].isalpha()):
            yield word, part
            word, part, i = text[1].strip(" ,;"), "", text.end()
            continue
        depth += (line[i] in "{([") - (line[i] in "})]")
        part, i = part + line[i], i + 1
    yield word, part


_WORDS = re.compile(r"\\(?:text|mathrm)\{([^{}]*)\}(?=( *(?:[(_=]|\\max))?)")


def at_top(text: str) -> list[str]:
    """Split text at commas, semicolons and colons outside brackets."""
    depth, parts = 0, [""]
    for token in re.findall(r"\\[a-zA-Z]+|\\.|.", text):
        depth += (token in ("(", "[", "{", "\\{", "\\begin")) - (token in (")", "]", "}", "\\}", "\\end"))
        if depth == 0 and token in (",", ";", ":"):
            parts.append("")
        else:
            parts[-1] += token
    return parts


def spoken(letter: str) -> str:
    """Return the name of a letter in LaTeX, as read aloud."""
    try:
        return named(letter)
    except UnreadableError:
        return letter
