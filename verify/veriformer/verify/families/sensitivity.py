"""No argument is dead: what changes the formula's value changes the result."""

from __future__ import annotations

import numpy as np
import torch

from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.operation import Operation
from veriformer.verify.judging.trial import Observation, Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.laws.family import over
from veriformer.verify.operations.registry import OPERATIONS


def _sensitivity(operation: Operation, trial: Trial) -> None:
    assert operation.changes is not None
    arguments, changed = operation.changes(trial)
    references = operation.exact(trial, arguments, sharp=False)
    outcome = trial.call(arguments)
    agrees(trial, operation, arguments, outcome, references)
    trial.effective.clear()
    base = operation.parts(outcome, arguments)
    for what, others in changed.items():
        if not trial.takes(others):
            continue
        wanted = operation.exact(trial, others, sharp=False)
        if any(_apart(a, b) for a, b in zip(references, wanted, strict=True)):
            found = operation.parts(trial.call(others), others)
            _differs(trial, what, base, found)


def _apart(a: Reference, b: Reference) -> bool:
    with np.errstate(invalid="ignore"):
        return bool((np.abs(a.exact - b.exact) > a.bound + b.bound).any())


def _differs(trial: Trial, what: str, before: list[Observation], after: list[Observation]) -> None:
    same = all(torch.equal(a.value.detach(), b.value.detach()) for a, b in zip(before, after, strict=True))
    said = " and ".join(f"torch.equal({a.expression}, {b.expression})" for a, b in zip(before, after, strict=True))
    trial.require(not same, f"{what} changes nothing", f"not ({said})")


CHANGEABLE = tuple(operation for operation in OPERATIONS if operation.changes is not None)
"""The operations whose arguments can be changed one at a time."""


CHECKS = over(CHANGEABLE, "sensitivity", _sensitivity, effort=0.5)
