"""A violation that is a known convention, consistently followed: the claim under which it would be none.

Nothing is excused by it. The row stays a violation until the target carries the claim; then it is judged by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import PROFILES, Profile
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import Result, Status
from veriformer.verify.targets.claims import KNOWN_CONVENTIONS, Claims
from veriformer.verify.targets.target import Target

_PROFILE = replace(PROFILES["quick"], shrinks=0)
_FOLLOWED = (Status.PASS, Status.DEVIATION)


def suggested(row: CheckRun, target: Target, result: Result, seed: str) -> Result:
    """The result, with the claim that would settle it where it failed and there is one.

    target: that of the row, whose claims say which conventions its examples have asked for. A claim is tried on at
    least twice as many examples as it took to fail: fewer may hold without it as well.
    """
    if result.status is not Status.FAIL:
        return result
    profile = replace(_PROFILE, examples=max(_PROFILE.examples, 2 * result.examples))
    for convention, value in _alternatives(target):
        claims = target.claims.claiming(convention, value)
        if all(_run(one, target, claims, profile, seed).status in _FOLLOWED for one in (row, *_about(convention, row))):
            message = result.message
            if convention in target.claims.conventions:  # a claim that is false is at fault, apart from the operation
                claimed = target.claims.convention(convention)
                message = f"CLAIMS say {convention} = {claimed!r}, and {value!r} is what is followed: {message}"
            return replace(result, message=message, suggestion={"convention": convention, "value": value})
    return result


def _alternatives(target: Target) -> Iterator[tuple[str, str]]:
    """Yield the other values of each convention that was asked for."""
    for convention in sorted(target.claims.asked):
        held = target.claims.convention(convention)
        yield from ((convention, value) for value in KNOWN_CONVENTIONS[convention] if value != held)


def _about(convention: str, row: CheckRun) -> Iterator[CheckRun]:
    """The rows that are about this convention of the same operation: one lucky row says nothing of it."""
    for check in checks():
        if check.convention == convention and check.operation == row.check.operation and check != row.check:
            yield CheckRun(check, row.dtype if row.dtype in check.dtypes else check.dtypes[0], row.device)


def _run(row: CheckRun, target: Target, claims: Claims, profile: Profile, seed: str) -> Result:
    return run_check(row, replace(target, claims=claims), profile, seed, {})
