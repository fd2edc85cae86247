"""Expressions as a reader wants them: each sum within another has an index letter of its own."""

from __future__ import annotations

import re
from typing import Any

from sympy.printing.latex import LatexPrinter

from veriformer.spec.arithmetic.lazy_sympy import sp

_LETTERS = "jklhgpqrstuvwxyz"


def readable(e: Any) -> Any:
    """Name the unnamed indices of sums in an expression: j innermost, then k, l and so on."""
    names = {s.name for s in e.atoms(sp.Symbol) if not _nameless(s)} | {str(s.func) for s in e.atoms(sp.Function)}
    letters = [c for c in _LETTERS if c not in names]

    def lettered(part: Any) -> tuple[Any, int]:
        """Return the part with letters, and the depth of its nested sums."""
        if not part.has(sp.Sum):
            return part, 0
        if not isinstance(part, sp.Sum):
            found = [lettered(a) for a in part.args]
            return part.func(*(a for a, _ in found)), max(depth for _, depth in found)
        body, depth = lettered(part.function)
        limits = []
        for i, first, last in part.limits:
            depth += 1
            named = sp.Symbol(letters[depth - 1], integer=True) if _nameless(i) and depth <= len(letters) else i
            body = body.xreplace({i: named})
            limits.append((named, first, last))
        return part.func(body, *limits), depth

    return lettered(e)[0] if e.has(sp.Sum) else e


def in_latex(e: Any) -> str:
    """Return LaTeX, with a comma between the indices of Kronecker's delta where they are more than letters."""
    return str(_Printer().doprint(e))


def _nameless(i: Any) -> bool:
    return isinstance(i, sp.Dummy) or bool(re.fullmatch(r"j\d+", i.name))


class _Printer(LatexPrinter):  # type: ignore[misc]
    def _print_KroneckerDelta(self, e: Any, exp: Any = None) -> str:
        comma = "" if all(a.is_Symbol for a in e.args) else ","
        first, second = sorted(e.args, key=lambda a: bool(a.is_number))
        compared = rf"\delta_{{{self._print(first)}{comma} {self._print(second)}}}"
        return compared if exp is None else rf"\left({compared}\right)^{{{exp}}}"
