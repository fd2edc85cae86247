"""What a requirement of lesser weight comes to where it is not met: advice, which violates and blocks nothing."""

from __future__ import annotations

from dataclasses import replace

from veriformer.spec.requirement import Weight
from veriformer.verify.results import Result
from veriformer.verify.results.status import Status


def as_advice(result: Result) -> Result:
    """The result of a run that is not strict. A process that ended is no advice, whatever it was asked for."""
    unmet = result.status in (Status.FAIL, Status.TIMEOUT)
    lesser = result.weight is not None and Weight(result.weight).advice
    return replace(result, status=Status.ADVICE) if unmet and lesser else result
