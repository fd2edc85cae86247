"""Calls with their tensors under other memory layouts."""

from __future__ import annotations

from typing import Any

import torch

from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.strategies import layouts

WRITTEN_TO = "params"
"""Argument that optimizers write to. Its entries may not share memory, as those of an expanded tensor do."""


def laid_out(trial: Trial, operation: OpInfo) -> Arguments:
    """Draw a call, every tensor of it under a layout of its own."""
    drawn = operation.sample(trial)
    return {key: _laid_out(trial, operation, drawn, key) for key in drawn}


def _laid_out(trial: Trial, operation: OpInfo, arguments: Arguments, key: str) -> Any:
    """Draw another layout of one argument; masks, ids and rows that may not be constant keep their values."""
    value = arguments[key]
    if isinstance(value, list):
        apart = key == WRITTEN_TO
        return [trial.draw(layouts(expanded=not apart)).of(x) if isinstance(x, torch.Tensor) else x for x in value]
    if not isinstance(value, torch.Tensor):
        return value
    free = key in operation.inputs and key != "bias" and arguments.get("eps") != 0.0
    free = free and not (key in operation.ranking and trial.claims.deviates("choice.ties"))
    return trial.draw(layouts(expanded=free and bool(value.isfinite().all()))).of(value)
