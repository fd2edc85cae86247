"""A call that was answered, and whether the answer is right by given constants in a given format."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from veriformer.verify.judging.judge import HarnessError, Violation
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.outcome import Outcome
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees


@dataclass(frozen=True)
class Sample:
    """Call with its trial, its arguments and its outcome."""

    trial: Trial
    arguments: Arguments
    outcome: Outcome

    def fits(self, operation: OpInfo, judged_by: str, constants: Mapping[str, Any]) -> bool:
        """Return whether the outcome lies within the bound of this format, by the formula with these constants."""
        trial = copy.copy(self.trial)
        trial.effective, trial.constants = [], constants
        trial.judge_by(judged_by)
        try:
            references = operation.exact(trial, self.arguments, use_exact_oracle=False)
            agrees(trial, operation, self.arguments, self.outcome, references)
        except (Violation, HarnessError):
            return False
        return True


def all_fit(samples: Sequence[Sample], operation: OpInfo, judged_by: str, constants: Mapping[str, Any]) -> bool:
    """Return whether every outcome is right by these constants in this format, and there are any."""
    with np.errstate(all="ignore"):
        return bool(samples) and all(sample.fits(operation, judged_by, constants) for sample in samples)
