"""Findings of a run, put into its results."""

from __future__ import annotations

from dataclasses import replace

from veriformer.verify.findings import everything
from veriformer.verify.results import Results
from veriformer.verify.results.domain import Domain

SHARE = 0.5
"""Of the time of the rows, the most that findings may take beside it."""

LEAST_S = 30.0
"""Time that findings may take however short the run was."""


def store_findings(found: Results, told: everything.Told) -> None:
    """Put the findings into the results, and into every row the one that explains it; rows of operations whose causes
    were not looked for are told by requirement."""
    found.domain = _narrowed(found)
    where = found.implementation.get("where", {})
    found.findings = [
        replace(one, where=next((where[name] for name in one.operation.split(", ") if name in where), None))
        for one in everything.gathered(found, told)
    ]
    found.results = everything.with_findings(found.results, found.findings, found.weighs)


def _narrowed(found: Results) -> dict[str, Domain]:
    """Return the domains without what rows found to be refused."""
    domains = dict(found.domain)
    for row in found.results:
        known = domains.get(row.operation)
        if row.refused and known is not None:
            provided = tuple(name for name in known.provided if name not in row.refused)
            domains[row.operation] = replace(known, provided=provided, refused={**row.refused, **known.refused})
    return domains
