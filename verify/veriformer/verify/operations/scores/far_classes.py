"""Losses over vocabularies in which narrow numbers lose count of the classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.equality import exactly
from veriformer.verify.laws.family import check
from veriformer.verify.operations.scores.cross_entropy.record import CROSS_ENTROPY
from veriformer.verify.operations.scores.masked_lm_loss import MASKED_LM_LOSS
from veriformer.verify.operations.scores.perplexity import PERPLEXITY
from veriformer.verify.operations.scores.targets import ids
from veriformer.verify.strategies import choice, extent, values

_SIGNED, _UNSIGNED = 2**15, 2**16
_LAST = 40
"""The classes are among the last so many."""


def _numbers(trial: Trial) -> st.SearchStrategy[int]:
    """Return a strategy for the number of classes: beyond the integers of a half, or of signed or unsigned 16 bits."""
    if trial.dtype_name == "fp32":
        return trial.draw(choice(extent(_SIGNED + _LAST, _UNSIGNED), extent(_UNSIGNED + _LAST, 2 * _UNSIGNED)))
    apart = 2**trial.format.precision
    return extent(apart + _LAST, 4 * apart)


_PEAK = 16.0


def of_itself(loss: torch.Tensor) -> torch.Tensor:
    """Return a loss in whole eights."""
    return (loss.double() / 8).round()


def of_its_logarithm(perplexity: torch.Tensor) -> torch.Tensor:
    """Return the logarithm of a perplexity in whole eights."""
    return (perplexity.double().log() / 8).round()


def pulled(gradient: torch.Tensor) -> torch.Tensor:
    """Return 1 and −1 where a gradient is near its largest size, else 0."""
    return (gradient.double() / gradient.double().abs().max()).round()


def _far_classes(operation: OpInfo, trial: Trial) -> None:
    """Check two rows, each with one class far above the others: the target of the first, not that of the second.

    In halves the formula has no bound over so many classes. But a class is missed or it is not: each miss costs a loss
    of 16, so the mean is compared in multiples of 8, and the gradient by the classes that it raises and lowers.
    """
    number = trial.draw(_numbers(trial))
    high, low, target = number - 1 - trial.draw(values()).rng.permutation(_LAST)[:3]
    logits = np.zeros((2, number))
    logits[[0, 1], [high, low]] = _PEAK
    labels = "labels" if operation is MASKED_LM_LOSS else "target"
    arguments: dict[str, Any] = {"logits": trial.tensor(logits), labels: ids(np.stack((high, target)))}
    if operation is CROSS_ENTROPY:  # whose defaults may be the code's own
        arguments |= {"reduction": "mean", "label_smoothing": 0.0}
    outcome = trial.call(arguments, wrt=("logits",), cotangent=trial.tensor(np.ones(())))
    gradient = np.zeros(logits.shape)
    gradient[1, [low, target]] = 1.0, -1.0
    read = of_its_logarithm if operation is PERPLEXITY else of_itself
    trial.assert_within_bound(
        trial.observe(read, outcome.result), exactly(np.ones(())), "number of two classes that are missed"
    )
    trial.assert_within_bound(
        trial.observe(pulled, outcome.gradient("logits")), exactly(gradient), "which classes are pulled"
    )


def _on(operation: OpInfo) -> Callable[[Trial], None]:
    return lambda trial: _far_classes(operation, trial)


CHECKS = tuple(
    check(f"{o.name}.far_classes", _on(o), dtypes=("bf16", "fp16", "fp32"), effort=0.2)
    for o in (CROSS_ENTROPY, PERPLEXITY, MASKED_LM_LOSS)
)
