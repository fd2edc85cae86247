"""Mutation of a source file, and the list of all mutations of a file."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from veriformer.spec.sabotage.operators import in_code, in_default, in_domain, in_latex

ROOT = Path(__file__).parents[1]
"""The package that is mutated."""

PACKAGE = "veriformer.spec"

KINDS = ("formula", "default", "cost", "statement", "correction", "domain")

_UNTOUCHED = ("sabotage", "proofs", "arithmetic", "sources", "requirements", "derivation.py")


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
        """The text of the file with the mutation in it."""
        text = (ROOT / self.file).read_bytes()
        return text[: self.start] + self.new.encode() + text[self.end :]

    def __str__(self) -> str:
        return f"{self.name}: {self.old} → {self.new}"


def all_mutations() -> list[Mutation]:
    """Every mutation of every file of the specification that compiles, in a fixed order."""
    files = (p for p in sorted(ROOT.rglob("*.py")) if p.relative_to(ROOT).parts[0] not in _UNTOUCHED)
    return [m for file in files for m in mutations(file)]


def mutations(file: Path) -> list[Mutation]:
    """Every mutation of one file."""
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
    """The first line of a statement, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(d.lineno for d in decorators)])


def defined(statement: ast.stmt) -> list[str]:
    """The names that a statement of a module defines."""
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
