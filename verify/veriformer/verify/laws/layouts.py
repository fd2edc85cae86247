"""The same call with its tensors laid out otherwise in memory."""

from __future__ import annotations

from typing import Any

import torch

from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.strategies import layouts

WRITTEN_TO = "params"
"""What optimizers write to. Entries of it that share memory, as those of an expanded tensor do, cannot be stepped."""


def laid_out(trial: Trial, operation: OpInfo) -> Arguments:
    """A call as it is drawn, every tensor of it under a layout of its own."""
    drawn = operation.sample(trial)
    return {key: _laid_out(trial, operation, drawn, key) for key in drawn}


def _laid_out(trial: Trial, operation: OpInfo, arguments: Arguments, key: str) -> Any:
    """One argument under another layout; what must keep its values (masks, ids, rows that may not be constant) does."""
    value = arguments[key]
    if isinstance(value, list):
        apart = key == WRITTEN_TO
        return [trial.draw(layouts(expanded=not apart)).of(x) if isinstance(x, torch.Tensor) else x for x in value]
    if not isinstance(value, torch.Tensor):
        return value
    free = key in operation.inputs and key != "bias" and arguments.get("eps") != 0.0
    free = free and not (key in operation.ranking and trial.claims.deviates("choice.ties"))
    return trial.draw(layouts(expanded=free and bool(value.isfinite().all()))).of(value)
