"""The suite's checks as tests inside a user's own test file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from veriformer.spec.requirement import Weight
from veriformer.verify.catalogue.selection import select
from veriformer.verify.contract import dtypes
from veriformer.verify.engine import waivers
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.probing import domains
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.engine.run import loaded
from veriformer.verify.engine.runner import as_advice
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.judging.row import plan as rows_of
from veriformer.verify.recognition.places import Place, places
from veriformer.verify.results import VIOLATIONS, Result, Status
from veriformer.verify.results.domain import Domain
from veriformer.verify.results.foreign import clean
from veriformer.verify.targets.target import Target


def conformance(
    implementation: object,
    *,
    only: Sequence[str] = (),
    profile: str = "quick",
    dtype: Sequence[str] = dtypes.NAMES,
    device: str = "cpu",
    seed: str = "slug",
    strict: bool = False,
) -> pytest.MarkDecorator:
    """Parametrize a test with every row that applies to an implementation.

    >>> @conformance(my_module, only=["attention"])
    ... def test_conformance(row):
    ...     row()

    Each row is a callable that fails the test with the shrunk counterexample, or skips it where it cannot be judged, or
    where what it lacks is advice. Operations that the implementation does not carry make no tests. What an
    operation supports is probed before its first row. The arguments are those of ``check``; it raises what that raises,
    as tests are collected.
    """
    target = loaded(implementation, profile)
    found = _calls(target, only=only, profile=profile, dtype=dtype, device=device, seed=seed, strict=strict)
    rows: list[Any] = [pytest.param(call, id=row.key) for row, call in found]
    return pytest.mark.parametrize("row", rows)


def _calls(
    target: Target,
    *,
    only: Sequence[str],
    profile: str,
    dtype: Sequence[str],
    device: str,
    seed: str,
    strict: bool,
    fail_on: Weight = Weight.FRAGILE,
    settled: Callable[[Result], Result] = lambda result: result,
) -> list[tuple[CheckRun, Callable[[], None]]]:
    """Return every row that applies to a target, each with a callable that ends as a test ends.

    settled: what makes known failures of results. The other arguments are those of ``check``.
    """
    chosen = [c for c in select(only) if target.operation(c.operation) is not None]
    names = tuple(dtypes.canonical(name) for name in dtype)
    finished: dict[str, Status] = {}

    @cache
    def within(operation: str) -> Target:
        """Return the target restricted to its probed domain of an operation."""
        found = domains(target, (operation,), device, names)
        return target.within({name: Domain.from_dict(entry) for name, entry in found.items()}, strict=strict)

    def bound(row: CheckRun) -> Callable[[], None]:
        def call() -> None:
            result = run_check(row, within(row.check.operation), PROFILES[profile], seed, finished)
            if not strict:
                result = as_advice(result, recognised=bool(target.recognised), fail_on=fail_on)
            finished[row.key] = result.status
            report_outcome(settled(result))

        return call

    return [(row, bound(row)) for row in rows_of(chosen, names, device)]


@dataclass(frozen=True)
class Call:
    """A row as a test: what runs it, and where the code is that it judges, if that is known."""

    row: CheckRun
    run: Callable[[], None]
    place: Place | None


def calls_of(asked: Plan, waiver_file: Path | None) -> list[Call]:
    """Return every row that applies to the target of a plan, under the waivers of a file and of the target.

    Raises UnknownSelectionError, TargetError or WaiverError.
    """
    target = loaded(asked.target, asked.profile)
    waived = waivers.of_run(asked.target, waiver_file, asked.rows())
    found = _calls(
        target,
        only=asked.only,
        profile=asked.profile,
        dtype=asked.dtypes,
        device=asked.device,
        seed=asked.seed,
        strict=asked.strict,
        fail_on=Weight(asked.fail_on),
        settled=partial(waivers.apply, waivers=waived, today=date.today()),
    )
    where = places(target, dict.fromkeys(row.check.operation for row, _ in found))
    return [Call(row, run, where.get(row.check.operation)) for row, run in found]


def report_outcome(result: Result) -> None:
    """Report a row's outcome to pytest: pass, fail or skip."""
    if result.status in VIOLATIONS or result.status is Status.HARNESS_ERROR:
        part = f" (finding {result.finding})" if result.finding else ""
        pytest.fail(f"{result.key} {result.status}{part}: {clean(result.message)}", pytrace=False)
    if result.status not in (Status.PASS, Status.DEVIATION, Status.KNOWN_FAIL):
        pytest.skip(f"{result.status}: {result.message}")
