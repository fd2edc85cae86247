"""Refusals: bad input is refused, and the message names the argument."""

from __future__ import annotations

from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.family import over
from veriformer.verify.operations.registry import OPERATIONS


def _refusal(operation: OpInfo, trial: Trial) -> None:
    for bad in operation.invalid_calls(trial):
        trial.assert_raises(bad.arguments, what=bad.what)


def _named(operation: OpInfo, trial: Trial) -> None:
    for bad in operation.invalid_calls(trial):
        trial.assert_raises(bad.arguments, *bad.names, what=bad.what)


CHECKS = (
    *over(OPERATIONS, "refusal", _refusal, effort=0.2),
    *over(OPERATIONS, "refusal_names_argument", _named, effort=0.2),
)
