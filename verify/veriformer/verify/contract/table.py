"""Calls and meanings of the contract's operations, as the source of its signatures writes them; nothing is imported."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from functools import cache
from pathlib import Path

AREAS = ("scores", "layers", "attention", "positions", "optimization", "generation")
"""Files of ``contract/operations``, in the contract's order."""


@cache
def stubs() -> Mapping[str, ast.FunctionDef]:
    """Return the signatures by the names of their operations, in the contract's order."""
    folder = Path(__file__).with_name("operations")
    files = (ast.parse((folder / f"{area}.py").read_text(encoding="utf-8")) for area in AREAS)
    return {one.name: one for file in files for one in file.body if isinstance(one, ast.FunctionDef)}


def call(operation: str) -> str:
    """Return how an operation is called: its name, its arguments and their defaults."""
    arguments = copy.deepcopy(stubs()[operation].args)
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        argument.annotation = None
    return f"{operation}({ast.unparse(arguments)})".replace("'", '"').replace("e-0", "e-")


def meaning(operation: str) -> str:
    """Return the first line of its docstring."""
    return paragraphs(operation)[0].partition("\n")[0]


def paragraphs(operation: str) -> list[str]:
    """Return the paragraphs of its docstring."""
    return (ast.get_docstring(stubs()[operation]) or "").split("\n\n")
