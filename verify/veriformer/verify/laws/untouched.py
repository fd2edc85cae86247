"""Purity of calls: their arguments stay unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from veriformer.verify.judging.arguments import fresh
from veriformer.verify.judging.outcome import Outcome
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.scripts.script import literal


def assert_pure(trial: Trial, arguments: Arguments) -> None:
    """Raise Violation if a call modifies a tensor among its arguments, whatever it gives."""
    copies = {key: fresh(value, False) for key, value in arguments.items()}
    assert_arguments_unmodified(trial, trial.raw(arguments, copies), arguments, copies)


def assert_arguments_unmodified(
    trial: Trial, outcome: Outcome, arguments: Arguments, copies: Mapping[str, Any]
) -> None:
    """Raise Violation if a tensor among the arguments was modified."""
    call = outcome.name.removeprefix("r")
    for (key, item), (before, after) in _tensors(arguments, copies).items():
        assert_unmodified(trial, f"{key}{item}", f"{key}{call}{item}", before, after)


def _tensors(before: Arguments, after: Mapping[str, Any]) -> dict[tuple[str, str], tuple[torch.Tensor, torch.Tensor]]:
    """Return every tensor before and after the call, by its argument and its place in a list."""
    pairs = {}
    for key, value in before.items():
        if isinstance(value, torch.Tensor):
            pairs[key, ""] = (value, after[key])
        elif isinstance(value, list):
            pairs |= {(key, f"_{i}"): (item, after[key][i]) for i, item in enumerate(value)}
    return pairs


def assert_unmodified(trial: Trial, what: str, name: str, before: torch.Tensor, after: torch.Tensor) -> None:
    """Raise Violation unless a tensor is as it was before."""
    same = before.shape == after.shape and torch.equal(before, after.detach())
    trial.assert_true(same, f"{what} was modified", lambda: f"torch.equal({name}, {literal(before)})")
