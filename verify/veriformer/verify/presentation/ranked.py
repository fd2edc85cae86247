"""The findings of a run in the order in which they matter, and with them every violation that none of them explains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from veriformer.spec.requirement import Weight
from veriformer.verify.results import Results
from veriformer.verify.results.finding import Finding

_ORDER = list(Weight)


def ranked(run: Results) -> list[Finding]:
    """Return all findings by decreasing weight, stable; unexplained rows count as findings of their own."""
    return by_weight([*run.findings, *unexplained(run)])


def by_weight(found: Iterable[Finding]) -> list[Finding]:
    """Sort findings by decreasing weight, stable."""
    return sorted(found, key=lambda finding: _ORDER.index(finding.weight))


def grave(run: Results) -> list[Finding]:
    """Return the findings that decide the verdict: those of a weight that violates, and violated rows without one."""
    rows = {key for finding in unexplained(run) for key in finding.rows}
    return [found for found in ranked(run) if run.weighs(found.weight) or not rows.isdisjoint(found.rows)]


def advice(run: Results) -> list[Finding]:
    """Return the findings that violate nothing."""
    violating = grave(run)
    return [finding for finding in ranked(run) if finding not in violating]


def weaknesses(run: Results) -> list[Finding]:
    """Return the findings of weaknesses of a format that practice shares; none where they violate."""
    return [finding for finding in advice(run) if finding.weight is Weight.WEAKNESS]


def unexplained(run: Results) -> Iterator[Finding]:
    """Return a finding for each requirement that is violated in rows which no finding explains."""
    known = {key for finding in run.findings for key in finding.rows}
    groups: dict[str, list[Any]] = {}
    for row in run.violations:
        if row.key not in known:
            groups.setdefault(row.requirement, []).append(row)
    for rows in groups.values():
        yield _of_rows(rows)
    told = " ".join(finding.what for finding in run.findings if "global state" in finding.what)
    for operation, changed in run.global_state.items():
        if not all(change in told for change in changed):
            what = f"changes global state: {', '.join(changed)}"
            yield Finding(id=f"{operation}.global_state", weight=Weight.WRONG, operation=operation, what=what)


def _of_rows(rows: Sequence[Any]) -> Finding:
    first = rows[0]
    return Finding(
        id=first.requirement,
        weight=Weight(getattr(first, "weight", None) or Weight.WRONG),
        operation=first.operation,
        what=_what(first),
        dtypes=tuple(dict.fromkeys(row.dtype for row in rows if row.dtype)),
        requirements=(first.requirement,),
        rows=tuple(row.key for row in rows),
        counterexample=asdict(first.counterexample) if first.counterexample else None,
        suggestion=first.suggestion,
        message=first.message,
    )


def _what(row: Any) -> str:
    """Return the class of bug that a row is there to catch, else its status in words."""
    if row.status == "fail":
        return str(row.bug_class or f"{row.requirement.partition('.')[2]} does not hold")
    return _BECAME.get(row.status, str(row.status))


_BECAME = {
    "timeout": "gives no answer in time",
    "crash": "ends its process",
    "unexpected-pass": "a waived failure no longer happens: the waiver must go",
}
