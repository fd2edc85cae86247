"""Mutation of a source file, and the list of all mutations of a file.

Operators make small changes of formulas in Python and in LaTeX, each of which changes what is said.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
"""The package that is mutated."""

PACKAGE = "veriformer.spec"

KINDS = ("formula", "default", "cost", "statement", "correction", "domain")

_UNTOUCHED = ("sabotage", "proofs", "arithmetic", "sources", "requirements", "derivation.py")

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


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """Bytes start to end of a file (relative to `ROOT`) replaced; owner is the function or the equation's slug.

    The name is kind, file, owner, operator and position among its like: it survives edits elsewhere.
    """

    name: str
    kind: str
    file: str
    owner: str
    start: int
    end: int
    old: str
    new: str

    @property
    def module(self) -> str:
        """The name of the module that is mutated."""
        return f"{PACKAGE}." + self.file.removesuffix(".py").replace("/", ".")

    @property
    def defines(self) -> frozenset[str]:
        """The names that the module's statement defines in which the mutation lies."""
        text = (ROOT / self.file).read_bytes()
        line = text[: self.start].count(b"\n") + 1
        lies = (s for s in ast.parse(text).body if first_line(s) <= line <= (s.end_lineno or line))
        return frozenset(name for s in lies for name in defined(s))

    def applied(self) -> bytes:
        """Return the text of the file with the mutation in it."""
        text = (ROOT / self.file).read_bytes()
        return text[: self.start] + self.new.encode() + text[self.end :]

    def __str__(self) -> str:
        return f"{self.name}: {self.old} → {self.new}"


def all_mutations() -> list[Mutation]:
    """Return every mutation of every file of the specification that compiles, in a fixed order."""
    files = (p for p in sorted(ROOT.rglob("*.py")) if p.relative_to(ROOT).parts[0] not in _UNTOUCHED)
    return [m for file in files for m in mutations(file)]


def mutations(file: Path) -> list[Mutation]:
    """Return every mutation of a file."""
    text, name = file.read_bytes(), str(file.relative_to(ROOT))
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found, like = [], Counter[str]()
    tree = ast.parse(text)
    for kind, owner, node, operator, new in _changes(tree, name):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        old = text[start:end].decode()
        replaced = new if new is not None else old
        stem = f"{kind}:{name}:{owner}:{operator}"
        like[stem] += 1
        mutation = Mutation(
            name=f"{stem}:{like[stem]}", kind=kind, file=name, owner=owner, start=start, end=end, old=old, new=replaced
        )
        whole = next(s for s in tree.body if first_line(s) <= node.lineno <= (s.end_lineno or 0))
        first, last = starts[first_line(whole) - 1], starts[whole.end_lineno or 0]
        if replaced != old and _compiles(text[first:start] + replaced.encode() + text[end:last]):
            found.append(mutation)
    return found


def _compiles(text: bytes) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def first_line(statement: ast.stmt) -> int:
    """Return the first line of a statement, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(d.lineno for d in decorators)])


def defined(statement: ast.stmt) -> list[str]:
    """Return the names that a statement of a module defines."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.ImportFrom | ast.Import):
        return [alias.asname or alias.name for alias in statement.names]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [node.id for t in targets if t for node in ast.walk(t) if isinstance(node, ast.Name)]


Change = tuple[str, str, ast.expr, str, str | None]
"""Kind, owner, the expression that is replaced, the operator's name, and the new source text."""


def _changes(tree: ast.Module, file: str) -> Iterator[Change]:
    costs = Path(file).name.startswith("costs")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not node.decorator_list and not node.name.startswith("_sample"):
            if node.args.args and node.args.args[0].arg == "xp":
                yield from (("default", node.name, *c) for d in _defaults(node) for c in in_default(d))
                yield from (("formula", node.name, *c) for c in in_code(node.body))
            elif costs:
                yield from (("cost", node.name, *c) for c in in_code(node.body))
        elif isinstance(node, ast.Lambda) and costs:
            yield from (("cost", "", *c) for c in in_code([ast.Expr(node.body)]))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from _records(node)
        elif isinstance(node, ast.Assign) and "SYMBOLS" in (name := ast.unparse(node.targets[0])):
            yield from _domains(node.value, name)
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name):
                    yield from _corrections(decorator, node.name)


def _defaults(function: ast.FunctionDef) -> list[ast.expr]:
    return [d for d in (*function.args.defaults, *function.args.kw_defaults) if d is not None]


def _records(call: ast.Call) -> Iterator[Change]:
    if not isinstance(call.func, ast.Name) or call.func.id != "Equation":
        return
    given = {k.arg: k.value for k in call.keywords}
    slug = ast.literal_eval(given["slug"]) if isinstance(given.get("slug"), ast.Constant) else ""
    if isinstance(given.get("statement"), ast.Constant):
        yield from (("statement", str(slug), *c) for c in in_latex(given["statement"]))
    if "symbols" in given:
        yield from _domains(given["symbols"], str(slug))


def _domains(symbols: ast.expr, owner: str) -> Iterator[Change]:
    for node in ast.walk(symbols):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Symbol":
            yield from (("domain", owner, *c) for c in in_domain(node.args[1]))


def _corrections(call: ast.Call, owner: str) -> Iterator[Change]:
    if isinstance(call.func, ast.Name) and call.func.id == "erratum":
        for keyword in call.keywords:
            if keyword.arg == "corrected" and isinstance(keyword.value, ast.Constant):
                yield from (("correction", owner, *c) for c in in_latex(keyword.value))


def in_code(body: Sequence[ast.stmt]) -> Iterator[Replaced]:
    """Yield changed signs, constants, operands, terms, comparisons, max and min of a function's body."""
    for statement in body:
        for node in _computing(statement):
            yield from _of(node)


def _computing(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the node and its descendants, but for docstrings, messages of errors, annotations and nested functions."""
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
    """Yield changed defaults: a float a tenth more, an integer one more, a tuple reversed."""
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
    """Yield changed signs, numbers, indices, extrema, sums, fractions of a LaTeX string, one place at a time; not
    words.
    """
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
    """Yield changed spaces of a symbol: its field, its bound, its size."""
    value = space.value if isinstance(space, ast.Constant) else ""
    if isinstance(value, str):
        for name, (pattern, new) in _SPACES.items():
            if (changed := re.sub(pattern, new, value, count=1)) != value:
                yield space, name, repr(changed)
