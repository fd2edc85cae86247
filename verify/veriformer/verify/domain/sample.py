"""An answered call, judged for given constants in a given dtype.

By such calls a target computes in the format of its input, or in a coarser one that explains every plain result.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from veriformer.verify.contract import dtypes
from veriformer.verify.judging.judge import HarnessError, Violation
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.outcome import Outcome
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees

COARSER: Mapping[str, tuple[str, ...]] = {"fp64": ("fp32", "bf16", "fp16"), "fp32": ("bf16", "fp16")}
"""The formats in which results of a dtype may come to be; halves are as coarse as it gets."""


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


def infer_precision(samples: Sequence[Sample], operation: OpInfo, dtype: str, constants: Mapping[str, Any]) -> str:
    """Return the dtype itself where a result lies within its bound, or no coarser format explains all that do not."""
    if all_fit(samples, operation, dtype, constants):
        return dtype
    for coarser in COARSER.get(dtype, ()):
        held = coarser == "fp32" or all(_holds_every_entry(sample, coarser) for sample in samples)
        if held and all_fit(samples, operation, coarser, constants):
            return coarser
    return dtype


def _holds_every_entry(sample: Sample, coarser: str) -> bool:
    """Return whether the coarser format holds every entry: its bounds are so wide that a wrong formula may lie within
    them."""
    x = sample.outcome.value
    if not isinstance(x, torch.Tensor):
        return False
    return not x.is_meta and bool(torch.equal(x, x.to(dtypes.TORCH[coarser]).to(x.dtype)))
