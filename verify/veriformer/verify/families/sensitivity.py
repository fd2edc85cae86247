"""Sensitivity: a change of an argument that changes the formula's value changes the result."""

from __future__ import annotations

import numpy as np
import torch

from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.laws.family import over
from veriformer.verify.operations.registry import OPERATIONS


def _sensitivity(operation: OpInfo, trial: Trial) -> None:
    assert operation.argument_perturbations is not None
    arguments, changed = operation.argument_perturbations(trial)
    references = operation.exact(trial, arguments, use_exact_oracle=False)
    outcome = trial.call(arguments)
    agrees(trial, operation, arguments, outcome, references)
    trial.effective.clear()
    base = operation.parts(outcome, arguments)
    for what, others in changed.items():
        if not trial.supports_call(others):
            continue
        wanted = operation.exact(trial, others, use_exact_oracle=False)
        if any(_apart(a, b) for a, b in zip(references, wanted, strict=True)):
            found = operation.parts(trial.call(others), others)
            _differs(trial, what, base, found)


def _apart(a: Reference, b: Reference) -> bool:
    """Return whether an entry moves by more than both bounds; wide ones are computed only if needed."""
    with np.errstate(invalid="ignore"):
        distance = np.abs(a.exact - b.exact)
        return bool((distance > a.narrow + b.narrow).any()) and bool((distance > a.bound + b.bound).any())


def _differs(trial: Trial, what: str, before: list[Observation], after: list[Observation]) -> None:
    same = all(torch.equal(a.value.detach(), b.value.detach()) for a, b in zip(before, after, strict=True))
    said = " and ".join(f"torch.equal({a.expression}, {b.expression})" for a, b in zip(before, after, strict=True))
    trial.assert_true(not same, f"{what} changes nothing", f"not ({said})")


CHECKS = over(OPERATIONS, "sensitivity", _sensitivity, effort=0.5)
