"""In which format a target computes: that of its input, or a coarser one that explains every plain result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from veriformer.verify.contract import dtypes
from veriformer.verify.domain.sample import Sample, all_fit
from veriformer.verify.judging.op_info import OpInfo

COARSER: Mapping[str, tuple[str, ...]] = {"fp64": ("fp32", "bf16", "fp16"), "fp32": ("bf16", "fp16")}
"""The formats in which results of a dtype may come to be; halves are as coarse as it gets."""


def computed_in(samples: Sequence[Sample], operation: OpInfo, dtype: str, constants: Mapping[str, Any]) -> str:
    """The dtype itself where a result lies within its bound, or no coarser format explains all that do not."""
    if all_fit(samples, operation, dtype, constants):
        return dtype
    for coarser in COARSER.get(dtype, ()):
        held = coarser == "fp32" or all(_held(sample, coarser) for sample in samples)
        if held and all_fit(samples, operation, coarser, constants):
            return coarser
    return dtype


def _held(sample: Sample, coarser: str) -> bool:
    """Return whether the coarser format holds every entry: its bounds are so wide that a wrong formula may lie within
    them."""
    x = sample.outcome.value
    if not isinstance(x, torch.Tensor):
        return False
    return not x.is_meta and bool(torch.equal(x, x.to(dtypes.TORCH[coarser]).to(x.dtype)))
