"""What can become of a row."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """What became of one row. Green never hides what did not run."""

    PASS = "pass"
    FAIL = "fail"
    ADVICE = "advice"
    DEVIATION = "deviation"
    KNOWN_FAIL = "known-fail"
    UNEXPECTED_PASS = "unexpected-pass"
    NOT_PROVIDED = "not-provided"
    NOT_APPLICABLE = "not-applicable"
    BLOCKED = "blocked"
    VACUOUS = "vacuous"
    TIMEOUT = "timeout"
    CRASH = "crash"
    HARNESS_ERROR = "harness-error"


VIOLATIONS = frozenset({Status.FAIL, Status.TIMEOUT, Status.CRASH, Status.UNEXPECTED_PASS})
"""Statuses that make the exit status 1."""

BLOCKING = VIOLATIONS | {Status.BLOCKED, Status.HARNESS_ERROR}
"""Statuses of a prerequisite that block what rests on it."""

EXERCISED = VIOLATIONS | {Status.PASS, Status.ADVICE, Status.DEVIATION, Status.KNOWN_FAIL}
"""Statuses of a requirement that was put to the test."""
