"""Several candidates of one operation: the first is judged by all rows, the others by the rows of their equation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from veriformer.verify.engine.extent import without
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.presentation.recognised import judged_whole
from veriformer.verify.results import Results
from veriformer.verify.results.domain import Domain
from veriformer.verify.results.finding import Finding

MOST = 6
"""Maximum number of further candidates of a target that are judged."""

_LAWS = ("equation", "gradient")
_ALSO = ("purity",)
"""Rows of a further candidate beside its laws: a class may write into its arguments where the function does not."""


def further(
    target: str, recognised: Mapping[str, Any], rows: Sequence[CheckRun]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name of each further candidate of an operation, with the requirements that it is held to.

    rows: of the run. Nothing for a target that is one candidate.
    """
    if ":" in target and not Path(target).exists():
        return
    judged = judged_whole(recognised)
    found: dict[str, list[str]] = {}
    for pin in recognised.get("recognised", ()):
        if pin["name"] and pin not in judged:
            found.setdefault(pin["name"], []).append(pin["operation"])
    for name, operations in list(found.items())[:MOST]:
        asked = [slug for operation in operations for slug in _requirements(operation, rows)]
        if asked:
            yield name, tuple(asked)


def _requirements(operation: str, rows: Sequence[CheckRun]) -> list[str]:
    """Return an operation's equation, gradient and purity among the rows; all where it has neither of the first two."""
    slugs = list(dict.fromkeys(row.check.requirement.slug for row in rows if row.check.operation == operation))
    last = {slug: slug.rpartition(".")[2] for slug in slugs}
    if not set(_LAWS) & set(last.values()):
        return slugs
    return [slug for slug in slugs if last[slug] in (*_LAWS, *_ALSO)]


def absorb(
    found: Results, other: Results, name: str, requirements: Sequence[str], ran: frozenset[tuple[str, int]]
) -> None:
    """Put the results of a further candidate into those of a run: its rows and findings by its name.

    ran: lines, with their files, that calls of either ran: they may share functions.
    """
    found.results = [
        *found.results,
        *(replace(row, candidate=name, finding=_of(row.finding, name)) for row in other.results),
    ]
    found.planned += other.planned
    found.duration_s = round(found.duration_s + other.duration_s, 3)
    found.findings = [*found.findings, *(of_candidate(finding, name) for finding in other.findings)]
    found.domain = {
        operation: _both(domain, other.domain.get(operation), ran) for operation, domain in found.domain.items()
    }
    found.implementation = {
        **found.implementation,
        "also_judged": {**found.implementation.get("also_judged", {}), name: list(requirements)},
    }


def name_first(findings: Sequence[Finding], recognised: Mapping[str, Any]) -> list[Finding]:
    """Return the findings with the first candidate of an operation named, where there are several candidates."""
    first = {name: name for name in recognised.get("by_name", ())}
    first |= {pin["operation"]: pin["name"] for pin in judged_whole(recognised)}
    others = {pin["operation"] for pin in recognised.get("recognised", ()) if pin not in judged_whole(recognised)}
    several = {operation: name for operation, name in first.items() if operation in others}
    return [
        replace(one, what=_with(several[one.operation], one)) if several.get(one.operation) else one for one in findings
    ]


def _of(finding: str | None, name: str) -> str | None:
    return None if finding is None else f"{finding}-{name}"


def of_candidate(finding: Finding, name: str) -> Finding:
    """Return a finding of a further candidate, by its name."""
    rows = tuple(f"{key}@{name}" for key in finding.rows)
    return replace(finding, id=f"{finding.id}-{name}", what=_with(name, finding), rows=rows)


def _with(name: str, finding: Finding) -> str:
    """Return the sentence of a finding with the candidate's name after the operation."""
    start = f"{finding.operation}: "
    return f"{start if finding.what.startswith(start) else ''}{name}: {finding.what.removeprefix(start)}"


def _both(domain: Domain, other: Domain | None, ran: frozenset[tuple[str, int]]) -> Domain:
    """Merge the domains of two candidates of an operation: unexecuted code, unread and constant arguments, flags."""
    if other is None:
        return domain
    return replace(
        domain,
        never_run=without((*domain.never_run, *other.never_run), ran),
        untaken=without((*domain.untaken, *other.untaken), ran),
        unread=tuple(dict.fromkeys((*domain.unread, *other.unread))),
        never_varied=tuple(dict.fromkeys((*domain.never_varied, *other.never_varied))),
        flags=tuple(dict.fromkeys((*domain.flags, *other.flags))),
    )
