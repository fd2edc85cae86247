"""The parts of a run, put together: the same results as if one machine had run them all, timings aside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from veriformer.verify.engine import extent, parts
from veriformer.verify.engine.plan import Plan
from veriformer.verify.results import Results, Shard
from veriformer.verify.targets.files import sources
from veriformer.workers.versions import digest, versions


def shard_of(plan: Plan, number: int, of: int, seconds: Mapping[str, float]) -> tuple[Plan, Shard]:
    """Return the plan of one part of a run, and its record.

    seconds: time of each row in an earlier run, by key, which balances the parts.
    """
    groups: dict[str, list[tuple[str, float]]] = {}
    for row in plan.every_row():
        groups.setdefault(row.group, []).append((row.key, row.check.effort))
    mine = parts.split(parts.costs(groups, seconds), of)[number - 1]
    rows = tuple(key for group in mine for key, _ in groups[group])
    shard = Shard(number=number, of=of, plan=plan.request(), rows=rows, versions=versions_of(plan.target))
    return replace(plan, part=rows), shard


def versions_of(target: str) -> dict[str, str]:
    """Return the versions that all parts of a run of this target must share, a digest of its own files among them."""
    files = sources(target)
    return {**versions(), **({"target": digest(files.items())} if files else {})}


@dataclass(frozen=True)
class Merged:
    """A whole run, without its findings yet; invalid where something is missing of it.

    plan: what the run follows. versions: that its parts have in common. missing: what is missing, in words.
    """

    results: Results
    plan: Plan
    versions: Mapping[str, str]
    missing: list[str]


def merge(files: Mapping[str, Results]) -> Merged:
    """Put the parts of a run together. Raises NotOneRunError where the files do not belong to one run."""
    first = parts.check({name: found.shard for name, found in files.items()})
    (known, one), *others = files.items()
    for name, other in others:
        words = f"{known} and {name} are of different runs"
        parts.same(words, one.suite, other.suite)
        parts.same(words, anywhere(one.implementation), anywhere(other.implementation))
        domains_here, there_too = extent.probed(one.domain), extent.probed(other.domain)
        parts.same(f"{known} and {name} found different domains", domains_here, there_too)
    parts.of_this_suite(first)
    domains = {operation: extent.asked(domain).to_dict() for operation, domain in one.domain.items()}
    plan = replace(Plan.from_dict(first.plan), domains=domains)
    every = [row.key for row in plan.every_row()]
    rows = {result.key: result for found in files.values() for result in found.results}
    there = [found.shard for found in files.values() if found.shard]
    whole = replace(
        one,
        started=min(found.started for found in files.values()),
        duration_s=round(sum(found.duration_s for found in files.values()), 3),
        planned=len(every),
        domain=extent.joined(list(files.values())),
        global_state=_changes(files),
        findings=[],
        results=[rows[key] for key in every if key in rows],
        shard=None,
    )
    return Merged(whole, plan, first.versions, parts.missing(there, every, list(rows)))


def anywhere(implementation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the machine-independent part of a target's description: its files may lie elsewhere."""
    return {key: value for key, value in implementation.items() if key != "where"}


def _changes(files: Mapping[str, Results]) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for results in files.values():
        for operation, what in results.global_state.items():
            found.setdefault(operation, set()).update(what)
    return {operation: sorted(found[operation]) for operation in sorted(found)}
