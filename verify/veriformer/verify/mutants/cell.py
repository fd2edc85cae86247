"""Cell of the kill matrix: one requirement on one member."""

from __future__ import annotations

from dataclasses import dataclass

from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import Profile
from veriformer.verify.judging.check import Check
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import VIOLATIONS, Status
from veriformer.verify.targets.target import Target


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Result of one requirement on one member.

    killed: the requirement was violated. examples: the number of examples run, up to the one that killed. scalars: the
    number of entries of its smallest counterexample, and script_status: the exit status of its script in a process of
    its own, where they were asked for (see `smallest`).
    """

    family: str
    member: str
    requirement: str
    operation: str
    kind: str
    dtype: str
    status: str
    killed: bool
    examples: int
    seconds: float
    scalars: int | None = None
    script_status: int | None = None


def run_cell(name: str, target: Target | None, check: Check, dtype: str, profile: Profile, seed: str) -> Cell:
    """Run one check on the member of that name, such as ``mutant:GQA-01``.

    A target of None is a member that could not even be loaded, which kills it.
    """
    family, _, member = name.partition(":")
    result = None if target is None else run_check(CheckRun(check, dtype), target, profile, seed, {})
    status = Status.CRASH if result is None else result.status
    return Cell(
        family=family,
        member=member,
        requirement=check.requirement.slug,
        operation=check.operation,
        kind=check.requirement.kind.value,
        dtype=dtype,
        status=status.value,
        killed=status in VIOLATIONS,
        examples=0 if result is None else result.examples,
        seconds=0.0 if result is None else result.seconds,
    )
