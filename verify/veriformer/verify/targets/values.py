"""Values that code itself knows for a parameter: the other value of a flag, the words that it is compared with."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from torch import nn

from veriformer.verify.forms.configs import is_expansion, is_rate
from veriformer.verify.targets.statements import tree_of

WORDS = 4
"""Words that are tried of one parameter."""

RATE, NEXT_TO_NOTHING = 0.1, 1e-300
"""A rate that a module in evaluation mode makes no use of, and one by which a function that does drops nothing."""


def others(name: str, word: str, files: Iterable[str], *, built: bool) -> list[Any]:
    """Return values to try of a parameter that was always given one. word: that one, as Python writes it."""
    own = name.rpartition(".")[2]
    if word in ("True", "False"):
        return [word == "False"]
    if is_rate(own) and word in ("None", "0", "0.0"):
        module = nn.Dropout(RATE).eval()
        return [*([module] if word == "None" else []), *([RATE] if built else [RATE, NEXT_TO_NOTHING])]
    if is_rate(own) and word[:1].isdigit():
        return [0.0]
    if word == "None" and is_expansion(own):
        return [1.0]  # by which a size stays what it is
    if word == "None" and any(is_called(file, own) for file in files):
        return [_as_it_is]
    if word[:1] in ("'", '"') or word == "None":
        found = dict.fromkeys(text for file in files for text in words_compared(file, own))
        return [text for text in found if repr(text) != word][:WORDS]
    return []


def _as_it_is(x: Any, *rest: Any, **more: Any) -> Any:
    return x


def is_called(file: str, name: str) -> bool:
    """Return whether something of that name is called as a function in a file."""
    parsed = tree_of(file)
    calls = (node for node in ast.walk(parsed[0]) if isinstance(node, ast.Call)) if parsed is not None else ()
    return any(_is_named(call.func, name) and isinstance(call.func, ast.Name) for call in calls)


def words_compared(file: str, name: str) -> Iterator[str]:
    """Yield the words with which something of that name is compared in a file."""
    parsed = tree_of(file)
    for node in ast.walk(parsed[0]) if parsed is not None else ():
        if isinstance(node, ast.Compare) and any(_is_named(x, name) for x in (node.left, *node.comparators)):
            yield from _texts([node.left, *node.comparators])
        elif isinstance(node, ast.Match) and _is_named(node.subject, name):
            yield from _texts([case.pattern for case in node.cases])


def _is_named(node: ast.AST, name: str) -> bool:
    return getattr(node, "attr", None) == name or getattr(node, "id", None) == name


def _texts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                yield inner.value
