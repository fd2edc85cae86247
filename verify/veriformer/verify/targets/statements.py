"""Statements of a function, each with whether it stands in a branch on a parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SAYING = frozenset(("print", "warn", "warning", "info", "debug", "log", "warn_once", "warning_once"))
_ELSEWHERE = frozenset(
    (
        *("training", "is_cuda", "cuda", "device", "is_available", "is_scripting", "is_tracing", "is_compiling"),
        *("requires_grad", "is_grad_enabled", "is_autocast_enabled", "gradient_checkpointing", "is_meta", "jit"),
    )
)
"""Names in tests of where and for what code runs, which say nothing of what it computes."""

PRAGMA = "pragma: no cover"


@dataclass(frozen=True)
class Statement:
    """Statement of a function: its lines (of a compound one those of its head), and whether it stands in a branch whose
    test reads a parameter, a configuration or an attribute that is made from one."""

    first: int
    last: int
    branch: bool


@cache
def tree_of(file: str) -> tuple[ast.Module, tuple[str, ...]] | None:
    """Return the syntax of a file and its lines; None where it is no Python that can be read."""
    try:
        text = Path(file).read_text(encoding="utf-8")
        return ast.parse(text), tuple(text.splitlines())
    except (OSError, ValueError, SyntaxError):
        return None


def statements(
    file: str, first_line: int, chosen: frozenset[str] = frozenset(), *, inner: bool = False
) -> list[Statement]:
    """Return the statements of the function that begins there, without those that only refuse or tell something.

    chosen: parameters by a word of which the code is one operation of several. inner: whether others of the file call
    the function: a parameter that none of them gives has its default, whatever they are called with.
    """
    parsed = tree_of(file)
    if parsed is None:
        return []
    tree, lines = parsed
    for owner in ast.walk(tree):
        for node in ast.iter_child_nodes(owner):
            if isinstance(node, _Function) and _first(node) == first_line:
                kind = owner if isinstance(owner, ast.ClassDef) else None
                left = _never_given(tree, node) if inner else frozenset()
                return list(_Reader(node, kind, lines, chosen, left).block(node.body, branch=False))
    return []


def derivative_beside(file: str, first_line: int) -> int | None:
    """Return the first line of the method ``backward`` that stands beside the method that begins there; None where
    there is none, or autograd calls it: what a class differentiates by hand is run by nobody else."""
    parsed = tree_of(file)
    for owner in ast.walk(parsed[0]) if parsed is not None else ():
        methods = {x.name: x for x in ast.iter_child_nodes(owner) if isinstance(x, _Function)}
        if not isinstance(owner, ast.ClassDef) or first_line not in map(_first, methods.values()):
            continue
        of_autograd = any("Function" in (getattr(x, "attr", ""), getattr(x, "id", "")) for x in owner.bases)
        return _first(methods["backward"]) if "backward" in methods and not of_autograd else None
    return None


def _never_given(tree: ast.Module, function: _Function) -> frozenset[str]:
    """Return the parameters with defaults that no call in the file gives; nothing where none calls it by its name."""
    listed = [*function.args.posonlyargs, *function.args.args]
    own = [one.arg for one in listed if one.arg not in ("self", "cls")]
    calls = [x for x in ast.walk(tree) if isinstance(x, ast.Call) and _called_name(x) == function.name]
    if not calls or any(isinstance(x, ast.Starred) for call in calls for x in call.args):
        return frozenset()
    words = {one.arg for call in calls for one in call.keywords}
    optional = {*own[len(own) - len(function.args.defaults) :], *(one.arg for one in function.args.kwonlyargs)}
    given = {*own[: max(len(call.args) for call in calls)], *words}
    return frozenset() if None in words else frozenset(optional - given)


def _called_name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _first(node: _Function) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


class _Reader:
    def __init__(
        self,
        function: _Function,
        owner: ast.ClassDef | None,
        lines: tuple[str, ...],
        chosen: frozenset[str],
        left: frozenset[str],
    ) -> None:
        listed = function.args
        arguments = [
            *listed.posonlyargs,
            *listed.args,
            *listed.kwonlyargs,
            *filter(None, (listed.vararg, listed.kwarg)),
        ]
        self.names = {one.arg for one in arguments} - {"self", "cls"} - left
        self.attributes = _made_of_parameters(owner) if owner is not None else None
        self.lines, self.chosen = lines, chosen

    def block(self, body: list[ast.stmt], *, branch: bool) -> Iterator[Statement]:
        """Yield a block's statements; those after a conditional exit count as a branch as well."""
        for node in body:
            if self._is_silent(node):
                continue
            yield Statement(node.lineno, _head(node), branch)
            yield from self._inside(node, branch)
            if isinstance(node, ast.If) and _leaves(node.body) and self._reads(node.test):
                branch = True

    def _inside(self, node: ast.stmt, branch: bool) -> Iterator[Statement]:
        if isinstance(node, ast.If | ast.While):
            aside = _is_elsewhere(node.test) or self._is_of_others(node.test)
            inner = (branch or self._reads(node.test)) and not aside
            if not isinstance(node.body[-1], ast.Raise):
                yield from self.block(node.body, branch=inner)
            yield from self.block(node.orelse, branch=inner)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.With | ast.AsyncWith):
            yield from self.block(node.body, branch=branch)
            yield from self.block(getattr(node, "orelse", []), branch=branch)
        elif isinstance(node, ast.Try):
            for body in (node.body, node.orelse, node.finalbody):
                yield from self.block(body, branch=branch)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                yield from self.block(case.body, branch=branch or self._reads(node.subject))

    def _is_silent(self, node: ast.stmt) -> bool:
        """Return whether a statement computes nothing: it raises, logs, defines or is excluded from coverage."""
        if PRAGMA in self.lines[node.lineno - 1]:
            return True
        if isinstance(node, ast.If) and not node.orelse and all(map(self._is_silent, node.body)):
            return True
        if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], ast.Raise):
            return True
        if isinstance(node, ast.Expr):
            return isinstance(node.value, ast.Constant) or _says(node.value)
        if isinstance(node, ast.Assign):
            return _drops(node.value)
        kinds = (ast.Raise, ast.Assert, ast.Pass, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.ClassDef)
        return isinstance(node, (*kinds, ast.FunctionDef, ast.AsyncFunctionDef)) or _is_bare(node)

    def _reads(self, test: ast.expr) -> bool:
        """Return whether a test reads a parameter, or an attribute made from one, and not the device or mode the code
        runs in."""
        if _is_elsewhere(test) or self._is_of_others(test):
            return False
        nodes = [node for part in _without_ranks(test) for node in ast.walk(part)]
        read = {node.id for node in nodes if isinstance(node, ast.Name)}
        own = {node.attr for node in nodes if isinstance(node, ast.Attribute) and _is_self(node.value)}
        return bool(read & self.names) or (bool(own) if self.attributes is None else bool(own & self.attributes))

    def _is_of_others(self, test: ast.expr) -> bool:
        """Return whether a test compares the word of an operation, or asks an object for an entry that it may have."""
        parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        entries = [x for x in parts if isinstance(x, ast.Compare) and isinstance(x.ops[0], ast.In) and _is_word(x.left)]
        if any(isinstance(x.comparators[0], ast.Name) and x.comparators[0].id not in self.names for x in entries):
            return True
        sides = [test.left, *test.comparators] if isinstance(test, ast.Compare) else []
        names = {getattr(side, "attr", getattr(side, "id", "")) for side in sides}
        return any(map(_is_word, sides)) and bool(names & self.chosen)


def _is_word(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _without_ranks(test: ast.expr) -> list[ast.expr]:
    """Return the parts of a test but for those that ask a tensor for its rank: that is no parameter."""
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    sides = [[part.left, *part.comparators] if isinstance(part, ast.Compare) else [] for part in parts]
    return [part for part, of in zip(parts, sides, strict=True) if not any(map(_is_rank, of))]


def _is_rank(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "ndim"
    if not isinstance(node, ast.Call):
        return False
    of_shape = _called_name(node) == "len" and any(getattr(x, "attr", "") == "shape" for x in node.args)
    return of_shape or (_called_name(node) == "dim" and not node.args)


def _is_elsewhere(test: ast.expr) -> bool:
    """Return whether a test asks where, and for what, code runs."""
    nodes = list(ast.walk(test))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return bool(names & _ELSEWHERE) or any("device" in name.split("_") for name in names)


def _is_bare(node: ast.stmt) -> bool:
    """Return whether it is an annotation without a value, which leaves no code."""
    return isinstance(node, ast.AnnAssign) and node.value is None


def _head(node: ast.stmt) -> int:
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if not body:
        return node.end_lineno or node.lineno
    first = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
    return max(node.lineno, int(first.lineno) - 1)


def _leaves(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Return | ast.Continue | ast.Break)


def _drops(value: ast.expr) -> bool:
    """Return whether a value is dropout's: what is dropped is drawn in training, and judged where it is run."""
    return isinstance(value, ast.Call) and "dropout" in _called_name(value).lower()


def _says(value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return False
    return _called_name(value) in _SAYING


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _made_of_parameters(owner: ast.ClassDef) -> set[str] | None:
    """Return the attributes that a constructor sets from its parameters; None where the class has no constructor."""
    made = next((x for x in owner.body if isinstance(x, _Function) and x.name == "__init__"), None)
    if made is None:
        return None
    names = {one.arg for one in [*made.args.posonlyargs, *made.args.args, *made.args.kwonlyargs]} - {"self"}
    pairs = [pair for node in ast.walk(made) for pair in _assigned(node)]
    read = {id(value): {x.id for x in ast.walk(value) if isinstance(x, ast.Name)} for _, value in pairs}
    own = [(one, value) for one, value in pairs if isinstance(one, ast.Attribute) and _is_self(one.value)]
    return {one.attr for one, value in own if read[id(value)] & names}


def _assigned(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """Return the pairs of target and value of an assignment, one by one where both sides list as many."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return [(node.target, node.value)]
    found: list[tuple[ast.expr, ast.expr]] = []
    for target in node.targets if isinstance(node, ast.Assign) else ():
        left, right = getattr(target, "elts", [target]), getattr(node.value, "elts", None)  # type: ignore[attr-defined]
        several = right is not None and len(left) == len(right) and len(left) > 1
        found += zip(left, right, strict=True) if several and right else [(x, node.value) for x in left]  # type: ignore[attr-defined]
    return found
