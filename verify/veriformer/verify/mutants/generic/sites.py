"""Sites where a module can be edited, expressions that compute and none that only talks, with their operators."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

_TALKS = ("raise_for", "warn", "isinstance", "cast", "TypeVar")
"""Calls whose arguments are messages or types: an edit there changes no number."""

_Edit = tuple[str, ast.expr]
"""The operator's name, and what stands in the node's place."""

_SWAPPED = (ast.Sub, ast.Div, ast.MatMult, ast.FloorDiv, ast.Mod, ast.Pow)
_SIGNS: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
_EDGES: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}
_OTHER_NAMES = {
    "amax": "amin",
    "amin": "amax",
    "max": "min",
    "min": "max",
    "sum": "mean",
    "mean": "sum",
    "sin": "cos",
    "cos": "sin",
    "rsqrt": "sqrt",
    "ones": "zeros",
    "zeros": "ones",
    "tril": "triu",
    "triu": "tril",
    "logical_and": "logical_or",
    "all": "any",
    "any": "all",
    "floor": "ceil",
    "ceil": "floor",
}
_WIDENERS = ("float", "double", "to")
"""Methods of tensors, beside the function ``upcast``; the function ``float`` makes a number, which has one dtype."""


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
    """Yield every edit of a module, in source order; equal edits of a place once."""
    seen = set()
    for function, path, node in _expressions(tree):
        before = ast.unparse(node)
        for number, (operator, replacement) in enumerate(edits(node)):
            site = Site(module, function, operator, before, ast.unparse(replacement), node.lineno, path, number)
            if site.identifier not in seen and site.before != site.after:
                seen.add(site.identifier)
                yield site


def apply_edit(tree: ast.Module, site: Site) -> ast.Module:
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


def edits(node: ast.expr) -> Iterator[_Edit]:
    """Yield every operator's edits of a node."""
    for kind, operator in _OPERATORS:
        if isinstance(node, kind):
            yield from operator(node)


def _constant(node: ast.Constant) -> Iterator[_Edit]:
    value = node.value
    if isinstance(value, bool):
        yield "flag", ast.Constant(not value)
    elif isinstance(value, int):
        yield "constant", ast.Constant(value + 1)
        yield "constant", _number(value - 1)
    elif isinstance(value, float) and value:
        yield "constant", ast.Constant(value * 2)


def _number(value: int) -> ast.expr:
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def _binary(node: ast.BinOp) -> Iterator[_Edit]:
    if isinstance(node.op, _SWAPPED):
        yield "swapped operands", ast.BinOp(node.right, node.op, node.left)
    if isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        yield "dropped term", node.left
    if isinstance(node.op, ast.Add | ast.Mult):
        yield "dropped term", node.right
    if type(node.op) in _SIGNS:
        yield "sign", ast.BinOp(node.left, _SIGNS[type(node.op)](), node.right)


def _unary(node: ast.UnaryOp) -> Iterator[_Edit]:
    if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant) and isinstance(node.operand.value, int):
        yield "axis", _number(1 - node.operand.value)
        yield "axis", _number(-1 - node.operand.value)
    elif isinstance(node.op, ast.USub):
        yield "sign", node.operand
    elif isinstance(node.op, ast.Not | ast.Invert):
        yield "condition", node.operand


def _compare(node: ast.Compare) -> Iterator[_Edit]:
    if len(node.ops) == 1:
        for other in _EDGES.get(type(node.ops[0]), ()):
            yield "off by one", ast.Compare(node.left, [other()], node.comparators)


def _boolean(node: ast.BoolOp) -> Iterator[_Edit]:
    yield "condition", ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)


def _choice(node: ast.IfExp) -> Iterator[_Edit]:
    yield "condition", ast.IfExp(node.test, node.orelse, node.body)


def _call(node: ast.Call) -> Iterator[_Edit]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in _OTHER_NAMES:
        other = copy.deepcopy(node)
        if isinstance(other.func, ast.Attribute):
            other.func.attr = _OTHER_NAMES[name]
        elif isinstance(other.func, ast.Name):
            other.func.id = _OTHER_NAMES[name]
        yield "other function", other
    if name in _WIDENERS and isinstance(node.func, ast.Attribute) and not _to_a_device(node):
        yield "dtype", node.func.value
    elif name == "upcast":
        yield "dtype", node.args[0]


def _to_a_device(call: ast.Call) -> bool:
    """Return whether the call is ``x.to(y.device)``, which changes no dtype."""
    return any(isinstance(argument, ast.Attribute) and argument.attr == "device" for argument in call.args)


_OPERATORS: tuple[tuple[type[ast.expr], Callable[..., Iterator[_Edit]]], ...] = (
    (ast.Constant, _constant),
    (ast.BinOp, _binary),
    (ast.UnaryOp, _unary),
    (ast.Compare, _compare),
    (ast.BoolOp, _boolean),
    (ast.IfExp, _choice),
    (ast.Call, _call),
)
