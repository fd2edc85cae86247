"""Rows reported as advice, which violates and blocks nothing: requirements of lesser weight, and calls refused by code
that was not written for the contract."""

from __future__ import annotations

from dataclasses import replace

from veriformer.spec.requirement import Weight
from veriformer.verify.results import Result
from veriformer.verify.results.status import Status

_REFUSED = "raised "


def as_advice(result: Result, *, recognised: bool = False, fail_on: Weight = Weight.FRAGILE) -> Result:
    """The result of a run that is not strict. A process that ended is no advice, whatever it was asked for.

    fail_on: the least weight that violates. recognised: whether the code was not written for the contract. How it is
    called is then a guess of ours: an exception says that it is not called so, and nothing of what it computes; where
    it follows no rule, the finding that explains it makes a failure of it again.
    """
    unmet = result.status in (Status.FAIL, Status.TIMEOUT)
    lesser = result.weight is not None and not Weight(result.weight).at_least(fail_on)
    refused = recognised and result.status is Status.FAIL and str(result.message).startswith(_REFUSED)
    return replace(result, status=Status.ADVICE) if unmet and (lesser or refused) else result
