"""A whole run in this process: from a plan to Results, with the findings in them."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from veriformer.spec.requirement import Weight
from veriformer.verify.contract import dtypes
from veriformer.verify.engine import extent, probing
from veriformer.verify.engine.journal import Journal
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.probe import TargetInfo
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.engine.runner import Runner
from veriformer.verify.findings import everything
from veriformer.verify.results import Result, Results, Status
from veriformer.verify.results.domain import Domain
from veriformer.verify.results.finding import Finding
from veriformer.verify.targets.loading import load, wrap
from veriformer.verify.targets.target import Target

INTERRUPTED = "interrupted"
"""Why a run was stopped, where the person did it."""

SHARE_OF_FINDINGS = 0.5
"""Of the time of the rows, the most that findings may take beside it."""

LEAST_S_OF_FINDINGS = 30.0
"""Time that findings may take however short the run was."""


def _silent(result: Result) -> None:
    return None


def settle(plan: Plan, lacking: Mapping[str, str], journal: Journal, tell: Callable[[Result], None]) -> None:
    """Write the results of rows of operations that the target does not provide: they need no process."""
    for row in plan.pending():
        reason = lacking.get(row.check.operation)
        if reason is not None:
            result = row.result(Status.NOT_PROVIDED, message=reason)
            journal.add(result)
            tell(result)


def loaded(implementation: object, profile: str) -> Target:
    """Return the target of ``check``. Raises ValueError for an unknown profile, TargetError for an unknown target."""
    if profile not in PROFILES:
        raise ValueError(f"profile: expected one of {', '.join(PROFILES)}, got {profile!r}")
    return load(str(implementation)) if isinstance(implementation, str | Path) else wrap(implementation)


def check(
    implementation: object,
    *,
    only: Sequence[str] = (),
    profile: str = "quick",
    dtype: Sequence[str] = dtypes.NAMES,
    device: str = "cpu",
    seed: str = "slug",
    strict: bool = False,
    fail_on: str = Weight.FRAGILE.value,
    partial: bool = False,
) -> Results:
    """Hold an implementation against the specification: any object or module that carries operations of the contract,
    or the words for a target that the command takes: a file, a dotted name, ``impl:tiled``.

    only: requirements, operations, equation numbers or globs; empty for everything. profile: ``quick``, ``default`` or
    ``thorough``. dtype: names such as ``fp32``. seed: text; equal seeds give equal runs.
    strict: whether requirements of lesser weight (unhelpful refusals, results that could be more precise), which are
    advice, count as violations. fail_on: the least weight that violates. partial: whether an implementation may hold
    of which a mask, a cache, a state or a branch could not be judged.
    Returns Results, with ``.verdict``, ``.findings``, ``.raise_for_findings()``, ``.violations``,
    ``.advice``, ``.exit_status``, ``.to_pandas()``.

    Rows run in this very process: a row that hangs is stopped, but an implementation that ends the process ends
    yours. The command
    line keeps such a one apart. Raises ValueError for an unknown profile, dtype or selection, TargetError for words
    that nothing can be loaded from.
    """
    target = loaded(implementation, profile)
    names = tuple(dtypes.canonical(name) for name in dtype)
    plan = Plan(
        target=target.spec,
        profile=profile,
        only=tuple(only),
        dtypes=names,
        device=device,
        seed=seed,
        strict=strict,
        fail_on=Weight(fail_on).value,
        partial=partial,
    )
    started, clock = datetime.now(UTC), time.perf_counter()
    plan = replace(
        plan, domains=probing.domains(target, plan.operations(), device, names), recognised=target.recognised
    )
    described = probing.describe(target, device)
    with tempfile.TemporaryDirectory(prefix="veriformer-") as folder, _silenced():
        journal = Journal(Path(folder) / "journal")
        journal.begin(plan)
        settle(plan, described.lacking, journal, _silent)
        run_here(replace(plan, finished=tuple(journal.results())), plan.within(target), journal, _silent)
        found = results_of(plan, described, journal, started, clock)
    told: dict[str, list[Finding]] = {}
    seconds = max(LEAST_S_OF_FINDINGS, SHARE_OF_FINDINGS * found.duration_s)
    everything.diagnose_operations(
        everything.by_operation(found.results), plan.within(target), seed, seconds, told.__setitem__
    )
    store_findings(found, told)
    return found


def run_here(plan: Plan, target: Target, journal: Journal, tell: Callable[[Result], None]) -> None:
    """Run the pending rows of a plan in this process, write each down and tell of it."""
    runner, statuses = Runner(plan, target, may_kill=False), journal.statuses()
    for row in plan.pending():
        result = runner.run(row, statuses)
        statuses[row.key] = result.status
        if seen := runner.seen():
            journal.see(seen)
        if changes := runner.changes():
            journal.change(changes)
        journal.add(result)
        tell(result)


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Discard output and warnings of an implementation."""
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
        warnings.catch_warnings(action="ignore"),
    ):
        yield


def results_of(plan: Plan, described: TargetInfo, journal: Journal, started: datetime, clock: float) -> Results:
    """Return the results in a journal, in the order of the plan."""
    finished = journal.results()
    rows = plan.rows()
    found = [finished[row.key] for row in rows if row.key in finished]
    return Results(
        suite=described.suite,
        implementation=described.implementation,
        environment=described.environment,
        profile=plan.profile,
        seed=plan.seed,
        started=started.isoformat(timespec="seconds"),
        duration_s=round(time.perf_counter() - clock, 3),
        planned=len(rows),
        strict=plan.strict,
        fail_on=Weight(plan.fail_on),
        partial=plan.partial,
        only=list(plan.only),
        global_state=journal.changes(),
        domain=extent.domains_of(plan, found, extent.together([described.seen, journal.seen()])),
        results=found,
    )


def store_findings(found: Results, told: everything.Told) -> None:
    """Put the findings into the results, and into every row the one that explains it; rows of operations whose causes
    were not looked for are told by requirement."""
    found.domain = _narrowed(found)
    found.findings = [with_place(one, found.implementation) for one in everything.gathered(found, told)]
    found.results = everything.with_findings(found.results, found.findings, found.weighs)


def with_place(finding: Finding, implementation: Mapping[str, Any]) -> Finding:
    """Return the finding with file and line of the code that it is about, where they are known."""
    where = implementation.get("where", {})
    return replace(finding, where=next((where[name] for name in finding.operation.split(", ") if name in where), None))


def _narrowed(found: Results) -> dict[str, Domain]:
    """Return the domains without the features that rows found to be refused."""
    domains = dict(found.domain)
    for row in found.results:
        known = domains.get(row.operation)
        if row.refused and known is not None:
            provided = tuple(name for name in known.provided if name not in row.refused)
            domains[row.operation] = replace(known, provided=provided, refused={**row.refused, **known.refused})
    return domains
