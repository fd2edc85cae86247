"""A whole run: from a plan to Results, over worker processes or in this one."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from veriformer.spec.requirement import Weight
from veriformer.verify.contract import dtypes
from veriformer.verify.engine import extent, plugin, probing, process_environment, suite
from veriformer.verify.engine.inquiry import LEAST_S, SHARE, store_findings
from veriformer.verify.engine.journal import Journal
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.probe import Described
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.findings import everything
from veriformer.verify.results import Result, Results, Status
from veriformer.verify.results.finding import Finding
from veriformer.verify.targets.loading import load, wrap
from veriformer.verify.targets.target import Target

INTERRUPTED = "interrupted"
"""Why a run was stopped, where the person did it."""


def _silent(result: Result) -> None:
    return None


def run(
    plan: Plan,
    described: Described,
    journal: Journal,
    *,
    jobs: int,
    tell: Callable[[Result], None] = _silent,
) -> tuple[Results, bool]:
    """Run the pending rows of a plan over worker processes; the journal has been begun or resumed.

    Returns the results so far and whether the run was interrupted.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    plan = replace(plan, finished=tuple(journal.results()))
    _settle(plan, described.lacking, journal, tell)
    plan = replace(plan, finished=tuple(journal.results()))
    with tempfile.TemporaryDirectory(prefix="veriformer-") as folder:
        shared = Path(folder) / "plan.json"
        plan.save(shared)
        options = [
            "-pxdist.plugin",
            "-pveriformer.verify.engine.plugin",
            f"--numprocesses={jobs}",
            "--dist=loadgroup",
            f"--max-worker-restart={len(plan.pending()) + jobs}",
            f"--veriformer-plan={shared}",
            f"--veriformer-journal={journal.path.absolute()}",
        ]
        side = plugin.Controller(plan, journal, tell)
        while side.plan.pending():
            run_pytest(options, side, Path(folder))
            if side.interrupted or not side.resumed():
                break
            side.plan.save(shared)  # a target ended what runs the rows: the others are still to run
    return results_of(plan, described, journal, started, clock), side.interrupted


def _settle(plan: Plan, lacking: Mapping[str, str], journal: Journal, tell: Callable[[Result], None]) -> None:
    """Write down the rows of operations that the target does not provide: nobody need be asked for them."""
    for row in plan.pending():
        reason = lacking.get(row.check.operation)
        if reason is not None:
            result = row.result(Status.NOT_PROVIDED, message=reason)
            journal.add(result)
            tell(result)


def loaded(implementation: object, profile: str) -> Target:
    """The target that ``check`` is asked for. Raises ValueError for an unknown profile, TargetError for such words."""
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
    with tempfile.TemporaryDirectory(prefix="veriformer-") as folder:
        journal = Journal(Path(folder) / "journal")
        journal.begin(plan)
        _settle(plan, described.lacking, journal, _silent)
        plan = replace(plan, finished=tuple(journal.results()))
        side = plugin.Local(plan, journal, _silent, plan.within(target))
        if plan.pending():
            run_pytest(["-pveriformer.verify.engine.plugin"], side, Path(folder))
        if side.interrupted:
            raise KeyboardInterrupt
        found = results_of(plan, described, journal, started, clock)
    told: dict[str, list[Finding]] = {}
    seconds = max(LEAST_S, SHARE * found.duration_s)
    everything.inquire(everything.by_operation(found.results), plan.within(target), seed, seconds, told.__setitem__)
    store_findings(found, told)
    return found


def run_pytest(options: list[str], side: object, folder: Path) -> int:
    """pytest on the suite's one test function, without configuration and plugins of wherever it is started."""
    fixed = [
        str(suite.__file__),
        "-pno:terminal",
        "-pno:cacheprovider",
        "-pno:unraisableexception",  # which goes through all the memory of the process at the end
        "--assert=plain",
        "--noconftest",
        f"--rootdir={folder}",
        f"-c{os.devnull}",
        "--import-mode=importlib",
        "-Wignore",
    ]
    with _environment(
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTEST_ADDOPTS="", PYTEST_PLUGINS="", **process_environment.OF_WORKERS
    ):
        return int(pytest.main([*fixed, *options], plugins=[side]))


@contextlib.contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def results_of(plan: Plan, described: Described, journal: Journal, started: datetime, clock: float) -> Results:
    """What a journal comes to, in the order of the plan."""
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
