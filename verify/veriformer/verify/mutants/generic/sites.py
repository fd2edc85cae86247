"""Where a module can be edited: every expression that computes, and none that only talks."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from veriformer.verify.mutants.generic.operators import edits

_TALKS = ("raise_for", "warn", "isinstance", "cast", "TypeVar")
"""Calls whose arguments are messages or types: an edit there changes no number."""


@dataclass(frozen=True)
class Site:
    """Edit of one expression of one module.

    function: its qualified name, such as ``layer_norm`` or ``_LayerNorm.forward``. operator: the kind of edit. before,
    after: the source of the expression. path: of the node in the module's tree. edit: its number there.
    """

    module: str
    function: str
    operator: str
    before: str
    after: str
    line: int
    path: tuple[str | int, ...]
    edit: int

    @property
    def identifier(self) -> str:
        """A name that lasts as long as the edited line says what it says."""
        return f"{self.module.removeprefix('veriformer.impl.')}:{self.function}:{self.before} → {self.after}"


def sites(module: str, tree: ast.Module) -> Iterator[Site]:
    """Every edit of a module, in the order of its source. An edit that stands there twice is listed once."""
    seen = set()
    for function, path, node in _expressions(tree):
        before = ast.unparse(node)
        for number, (operator, replacement) in enumerate(edits(node)):
            site = Site(module, function, operator, before, ast.unparse(replacement), node.lineno, path, number)
            if site.identifier not in seen and site.before != site.after:
                seen.add(site.identifier)
                yield site


def edited(tree: ast.Module, site: Site) -> ast.Module:
    """Return the tree with the edit made, in place."""
    *outer, last = site.path
    parent = _at(tree, outer)
    node: ast.expr = _at(parent, [last])
    replacement = ast.copy_location(list(edits(node))[site.edit][1], node)
    if isinstance(last, int):
        parent[last] = replacement
    else:
        setattr(parent, last, replacement)
    return ast.fix_missing_locations(tree)


def _at(node: Any, path: Iterable[str | int]) -> Any:
    for step in path:
        node = node[step] if isinstance(step, int) else getattr(node, step)
    return node


def _expressions(tree: ast.Module) -> Iterator[tuple[str, tuple[str | int, ...], ast.expr]]:
    for path, node, name in _definitions(tree, (), ""):
        body = node.body
        for index, statement in enumerate(body):
            if index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue  # the docstring
            yield from ((name, *found) for found in _inside(statement, (*path, "body", index)))


def _definitions(
    node: ast.Module | ast.ClassDef | ast.FunctionDef, path: tuple[str | int, ...], name: str
) -> Iterator[tuple[tuple[str | int, ...], ast.FunctionDef, str]]:
    for index, statement in enumerate(node.body):
        if isinstance(statement, ast.ClassDef | ast.FunctionDef):
            inner = f"{name}.{statement.name}".lstrip(".")
            if isinstance(statement, ast.FunctionDef):
                yield (*path, "body", index), statement, inner
            yield from _definitions(statement, (*path, "body", index), inner)


def _inside(node: ast.AST, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], ast.expr]]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.JoinedStr | ast.Raise) or _talks(node):
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return  # it asserts that two lengths are equal, which they are
    if isinstance(node, ast.expr):
        yield path, node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "ctx"):
            continue
        children = enumerate(value) if isinstance(value, list) else ()
        for index, child in children:
            if isinstance(child, ast.AST) and not (name == "args" and index == 1 and _fills(node, child)):
                yield from _inside(child, (*path, name, index))
        if isinstance(value, ast.AST):
            yield from _inside(value, (*path, name))


def _fills(call: ast.AST, value: ast.AST) -> bool:
    """Return whether the value is the fill of a mask, which most other numbers could replace."""
    method = getattr(getattr(call, "func", None), "attr", "")
    return method in ("masked_fill", "masked_fill_") and isinstance(value, ast.Constant)


def _talks(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in _TALKS
