"""Findings that are one: the same sentence twice, or the same call with the same result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from veriformer.spec.requirement import Weight
from veriformer.verify.findings.sharing import first_words
from veriformer.verify.results.finding import Finding

_ORDER = list(Weight)


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings, each that says or shows of its operation what a graver or earlier one does under that."""
    groups: list[list[Finding]] = []
    for one in sorted(findings, key=lambda one: _ORDER.index(one.weight)):
        group = next((group for group in groups if _same(group[0], one)), None)
        groups.append([one]) if group is None else group.append(one)
    return [_of(group) for group in groups]


def _same(one: Finding, other: Finding) -> bool:
    """Return whether two findings are of one fault."""
    if one.operation != other.operation or one.weight.advice != other.weight.advice:
        return False
    return one.what == other.what or _shows(one, other)


def _shows(one: Finding, other: Finding) -> bool:
    """Return whether two findings show one call with one result."""
    a, b = one.counterexample, other.counterexample
    if not a or not b or not a["arguments"] or first_words(one.message) != first_words(other.message):
        return False
    return all(repr(a.get(key)) == repr(b.get(key)) for key in ("arguments", "observed", "exact"))


def _of(group: Sequence[Finding]) -> Finding:
    first, *others = group
    if not others:
        return first
    said = len({one.when for one in group}) == 1 or (first.when is not None and first.when in first.what)
    return replace(
        first,
        when=first.when if said else None,
        dtypes=_each(group, "dtypes"),
        requirements=_each(group, "requirements"),
        rows=_each(group, "rows"),
        precedents=_each(group, "precedents"),
    )


def _each(group: Sequence[Finding], name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for one in group for value in getattr(one, name)))
