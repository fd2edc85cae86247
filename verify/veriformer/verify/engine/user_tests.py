"""The suite's checks as tests inside a user's own test file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest

from veriformer.verify.catalogue.selection import select
from veriformer.verify.contract import dtypes
from veriformer.verify.domain.record import Domain
from veriformer.verify.engine.advice import as_advice
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.plugin import report_outcome
from veriformer.verify.engine.probe import domains
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.engine.run import loaded
from veriformer.verify.judging.row import CheckRun, plan
from veriformer.verify.results import Status
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
    chosen = [c for c in select(only) if target.operation(c.operation) is not None]
    names = tuple(dtypes.canonical(name) for name in dtype)
    finished: dict[str, Status] = {}

    @cache
    def within(operation: str) -> Target:
        """The target inside what it supports of an operation."""
        found = domains(target, (operation,), device, names)
        return target.within({name: Domain.from_dict(entry) for name, entry in found.items()}, strict=strict)

    def bound(row: CheckRun) -> Callable[[], None]:
        def call() -> None:
            result = run_check(row, within(row.check.operation), PROFILES[profile], seed, finished)
            result = result if strict else as_advice(result, recognised=bool(target.recognised))
            finished[row.key] = result.status
            report_outcome(result)

        return call

    rows: list[Any] = [pytest.param(bound(row), id=row.key) for row in plan(chosen, names, device)]
    return pytest.mark.parametrize("row", rows)
