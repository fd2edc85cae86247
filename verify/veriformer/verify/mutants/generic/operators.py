"""Mutation operators: edits of nodes of a syntax tree."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

Edit = tuple[str, ast.expr]
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


def edits(node: ast.expr) -> Iterator[Edit]:
    """Everything that the operators make of one node."""
    for kind, operator in _OPERATORS:
        if isinstance(node, kind):
            yield from operator(node)


def _constant(node: ast.Constant) -> Iterator[Edit]:
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


def _binary(node: ast.BinOp) -> Iterator[Edit]:
    if isinstance(node.op, _SWAPPED):
        yield "swapped operands", ast.BinOp(node.right, node.op, node.left)
    if isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        yield "dropped term", node.left
    if isinstance(node.op, ast.Add | ast.Mult):
        yield "dropped term", node.right
    if type(node.op) in _SIGNS:
        yield "sign", ast.BinOp(node.left, _SIGNS[type(node.op)](), node.right)


def _unary(node: ast.UnaryOp) -> Iterator[Edit]:
    if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant) and isinstance(node.operand.value, int):
        yield "axis", _number(1 - node.operand.value)
        yield "axis", _number(-1 - node.operand.value)
    elif isinstance(node.op, ast.USub):
        yield "sign", node.operand
    elif isinstance(node.op, ast.Not | ast.Invert):
        yield "condition", node.operand


def _compare(node: ast.Compare) -> Iterator[Edit]:
    if len(node.ops) == 1:
        for other in _EDGES.get(type(node.ops[0]), ()):
            yield "off by one", ast.Compare(node.left, [other()], node.comparators)


def _boolean(node: ast.BoolOp) -> Iterator[Edit]:
    yield "condition", ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)


def _choice(node: ast.IfExp) -> Iterator[Edit]:
    yield "condition", ast.IfExp(node.test, node.orelse, node.body)


def _call(node: ast.Call) -> Iterator[Edit]:
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


_OPERATORS: tuple[tuple[type[ast.expr], Callable[..., Iterator[Edit]]], ...] = (
    (ast.Constant, _constant),
    (ast.BinOp, _binary),
    (ast.UnaryOp, _unary),
    (ast.Compare, _compare),
    (ast.BoolOp, _boolean),
    (ast.IfExp, _choice),
    (ast.Call, _call),
)
