"""Statuses of rows."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """Status of a row; what did not run never looks like what held."""

    PASS = "pass"
    FAIL = "fail"
    ADVICE = "advice"  # failed, at a requirement of lesser weight
    DEVIATION = "deviation"  # holds by a convention that the target claims, other than the contract's
    KNOWN_FAIL = "known-fail"  # failed, as a waiver says
    UNEXPECTED_PASS = "unexpected-pass"  # holds, where a waiver says that it fails
    NOT_PROVIDED = "not-provided"  # the target has no such operation or argument, or refuses every such call
    NOT_APPLICABLE = "not-applicable"  # the requirement asks for nothing in this dtype, or of such a target
    BLOCKED = "blocked"  # not run: a row that it rests on did not hold
    VACUOUS = "vacuous"  # run, and the bound exceeds what it judges in most examples
    TIMEOUT = "timeout"  # did not end in the time that a row may take
    CRASH = "crash"  # the target ended its process
    HARNESS_ERROR = "harness-error"  # the suite itself made an error


VIOLATIONS = frozenset({Status.FAIL, Status.TIMEOUT, Status.CRASH, Status.UNEXPECTED_PASS})
"""Statuses that make the exit status 1."""

BLOCKING = VIOLATIONS | {Status.BLOCKED, Status.HARNESS_ERROR}
"""Statuses of a prerequisite that block what rests on it."""

EXERCISED = VIOLATIONS | {Status.PASS, Status.ADVICE, Status.DEVIATION, Status.KNOWN_FAIL}
"""Statuses of a requirement that was put to the test."""

HELD = frozenset({Status.PASS, Status.DEVIATION})
"""Statuses of rows that show something in favour of an implementation."""
