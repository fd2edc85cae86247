"""Mutation operators: small changes of formulas in Python and in LaTeX, each of which changes what is said."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

Replaced = tuple[ast.expr, str, str]
"""The expression that is replaced, the operator's name, and the new source text."""

_SWAPPED: dict[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.Div(),
    ast.Div: ast.Mult(),
    ast.FloorDiv: ast.Mult(),
}
_COMPARED: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
}
_NAMES = {"max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum", "sin": "cos", "cos": "sin"}
_NOT_COMMUTATIVE = (ast.Sub, ast.Div, ast.MatMult, ast.Pow, ast.FloorDiv, ast.Mod)


def in_code(body: Sequence[ast.stmt]) -> Iterator[Replaced]:
    """Signs, constants, swapped operands, dropped terms, comparisons, max and min of a function's body."""
    for statement in body:
        for node in _computing(statement):
            yield from _of(node)


def _computing(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is below it, but for docstrings, messages of errors, annotations and nested functions."""
    if isinstance(node, ast.Raise | ast.FunctionDef | ast.JoinedStr | ast.Assert):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name != "annotation":
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _computing(child)


def _of(node: ast.AST) -> Iterator[Replaced]:
    if isinstance(node, ast.BinOp):
        yield from _binary(node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
        yield node, "minus-dropped", f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield node, "constant", f"({node.value + 1})"  # type: ignore[operator]
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        changed = ast.Compare(node.left, [_COMPARED[type(node.ops[0])], *node.ops[1:]], node.comparators)
        yield node, "comparison", f"({ast.unparse(changed)})"
    elif isinstance(node, ast.Attribute) and node.attr in _NAMES:
        yield node, "function", f"{ast.unparse(node.value)}.{_NAMES[node.attr]}"
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _NAMES:
        yield node.func, "function", _NAMES[node.func.id]


def _binary(node: ast.BinOp) -> Iterator[Replaced]:
    def written(left: ast.expr, op: ast.operator, right: ast.expr) -> str:
        return f"({ast.unparse(ast.BinOp(left, op, right))})"

    if type(node.op) in _SWAPPED:
        yield node, "sign", written(node.left, _SWAPPED[type(node.op)], node.right)
    if isinstance(node.op, _NOT_COMMUTATIVE):
        yield node, "operands", written(node.right, node.op, node.left)
    if isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.MatMult | ast.Pow):
        yield node, "dropped", f"({ast.unparse(node.left)})"


def in_default(default: ast.expr) -> Iterator[Replaced]:
    """A number a tenth more, or one more where it is an integer; a tuple reversed."""
    if isinstance(default, ast.Tuple) and len(default.elts) > 1:
        yield default, "reversed", ast.unparse(ast.Tuple(default.elts[::-1], ast.Load()))
    for node in ast.walk(default):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            new = node.value + 1 if type(node.value) is int else float(node.value) * 1.1  # type: ignore
            yield node, "number", repr(new)


_LATEX: dict[str, tuple[str, str | Callable[[re.Match[str]], str]]] = {
    "plus": (r"\+", "-"),
    "minus": (r"(?<=[ =(}{])-(?=[ \\\w(])", "+"),
    "number": (r"(?<![\w.])\d+(?![\w.])|(?<=[_^])\d", lambda m: str(int(m[0]) + 1)),
    "index": (r"_i\b|_j\b|_t\b|_k\b", lambda m: {"_i": "_j", "_j": "_i", "_t": "_s", "_k": "_l"}[m[0]]),
    "extremum": (r"\\(max|min)\b(?!})", lambda m: {"max": r"\min", "min": r"\max"}[m[1]]),
    "sum": (r"\\sum", r"\\prod"),
    "circle": (r"\\(sin|cos)\b", lambda m: {"sin": r"\cos", "cos": r"\sin"}[m[1]]),
    "logarithm": (r"\\log\b", r"\\exp"),
    "transpose": (r"\^T|\^\\top", ""),
    "root": (r"\\sqrt", ""),
    "product": (r"\\odot|\\cdot", "+"),
    "order": (r"\\(le|ge)\b(?= )", lambda m: {"le": r"\ge", "ge": r"\le"}[m[1]]),
    "fraction": (r"\\frac\{([^{}]+)\}\{([^{}]+)\}", r"\\frac{\2}{\1}"),
}


def in_latex(text: ast.expr) -> Iterator[Replaced]:
    """Signs, numbers, indices, extrema, sums, fractions of a LaTeX string, one place at a time; words are let be."""
    value = text.value if isinstance(text, ast.Constant) else ""
    if not isinstance(value, str):
        return
    words = [m.span() for m in re.finditer(r"\\(?:text|mathrm|mathbb|mathbf)\{[^{}]*\}", value)]
    for name, (pattern, new) in _LATEX.items():
        for match in re.finditer(pattern, value):
            if not any(first <= match.start() < last for first, last in words):
                changed = new(match) if callable(new) else match.expand(new)
                yield text, name, repr(value[: match.start()] + changed + value[match.end() :])


_SPACES = {
    "field": (r"\\mathbb\{R\}", r"\\mathbb{Z}"),
    "sign": (r"_\{\\ge 0\}|_\{> 0\}|_0", ""),
    "naturals": (r"\\mathbb\{N\}(?!_0)", r"\\mathbb{N}_0"),
    "power": (r"\^(\w)\b", r"^{\1 + 1}"),
    "size": (r"\\times", "+"),
}


def in_domain(space: ast.expr) -> Iterator[Replaced]:
    """The space that a symbol is from: its field, its bound, its size."""
    value = space.value if isinstance(space, ast.Constant) else ""
    if isinstance(value, str):
        for name, (pattern, new) in _SPACES.items():
            if (changed := re.sub(pattern, new, value, count=1)) != value:
                yield space, name, repr(changed)
