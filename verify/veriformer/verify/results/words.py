"""A finding in words: its one sentence, and the facts below it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from veriformer.spec.requirement import Weight
from veriformer.verify.results.evidence import call, elements
from veriformer.verify.results.finding import Finding
from veriformer.verify.results.foreign import named, number, one_line

MEANING = {
    Weight.WRONG: "contradicts the mathematics on ordinary input",
    Weight.LEAK: "lets through what must not be seen: future, mask, other sequences or rows",
    Weight.FRAGILE: "right on ordinary input, fails near the edge of the dtype's range or on degenerate input",
    Weight.WEAKNESS: "as PyTorch's own operator, or the formula step by step in that dtype, does as well",
    Weight.IMPRECISE: "less exact than its dtype allows",
    Weight.UNGUARDED: "accepts bad input, or refuses it unhelpfully",
}
"""Meanings of weights, for whoever meets the word here first."""

_SENTENCE, _LINE = 300, 300


def title(finding: Finding) -> str:
    """Return the fault and its condition, on one line."""
    what = one_line(finding.what, _SENTENCE)
    begun = what.startswith((f"{finding.operation}:", f"{finding.operation} "))
    return f"{'' if begun else f'{one_line(finding.operation, 60)}: '}{what}{_when(finding)}"


def _when(finding: Finding) -> str:
    if not finding.when or finding.when.removeprefix("with ") in finding.what:
        return ""
    return f" ({'when' if finding.confirmed else 'perhaps when, not confirmed'}: {one_line(finding.when, _SENTENCE)})"


def facts(finding: Finding) -> Iterator[tuple[str, str]]:
    """Give label and text of each fact, on one line each, for terminal, page, JSON, Markdown and JUnit alike."""
    example = finding.counterexample or {}
    if finding.where:
        yield "where", place(finding.where)
    called = call(example, _LINE)
    if called:
        yield "call", called
    result = outcome(finding)
    if result:
        yield "result", result
    if finding.fix:
        yield "change", one_line(finding.fix, _LINE)
    if finding.suggestion:
        yield "intended?", f"then say so: {claim(finding.suggestion)}"
    if finding.rows:
        yield "explains", count_explained(finding)
    if finding.requirements:
        slug = one_line(finding.requirements[0], 80)
        yield "demanded", f"{slug}: veriformer explain {slug}"
    if finding.precedents:
        more = f" and {len(finding.precedents) - 1} more" if len(finding.precedents) > 1 else ""
        yield "seen in", f"{one_line(finding.precedents[0], _LINE)}{more}"


def place(where: Mapping[str, Any]) -> str:
    """Return ``mine.py:12``, as terminals and editors link it."""
    return f"{one_line(where['file'], 200)}:{where['line']}"


def outcome(finding: Finding) -> str:
    """Return the observed and the exact value at the worst number; else the message."""
    worst = next(iter(elements(finding.counterexample or {})), None)
    if worst is None:
        observed = (finding.counterexample or {}).get("observed")
        return one_line(finding.message or ("" if observed is None else observed), _LINE)
    at = f"at [{worst.place}]: " if worst.place else ""
    numbers = ", ".join(f"{name} {_number(getattr(worst, name))}" for name in ("observed", "exact", "bound"))
    off = f" (off by {_short(worst.ratio)} × the bound)" if worst.ratio < float("inf") else ""
    return f"{at}{numbers}{off}"


def count_explained(finding: Finding) -> str:
    """Return the number of rows that the finding explains, with their dtypes and requirements."""
    dtypes = f" in {named([one_line(d, 20) for d in finding.dtypes], 4)}" if finding.dtypes else ""
    of = f": {named([one_line(r, 80) for r in finding.requirements], 2)}" if finding.requirements else ""
    return f"{number(len(finding.rows), 'failed row')}{dtypes}{of}"


def claim(suggestion: Mapping[str, str]) -> str:
    """Return the line of code under which nothing would be wrong."""
    chosen = suggestion
    if suggestion.keys() >= {"convention", "value"}:
        chosen = {suggestion["convention"]: suggestion["value"]}
    pairs = ", ".join(f'"{one_line(key, 60)}": "{one_line(value, 60)}"' for key, value in chosen.items())
    return f'CLAIMS = {{"conventions": {{{pairs}}}}}'


def _number(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else one_line(value, 40)


def _short(value: float) -> str:
    return f"{value:.2g}" if value < 1000 else f"{value:.1e}"
