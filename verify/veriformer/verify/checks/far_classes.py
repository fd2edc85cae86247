"""Losses over vocabularies in which narrow numbers lose count of the classes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from veriformer.verify.checks.family import check
from veriformer.verify.judge import Reference
from veriformer.verify.operation import Operation
from veriformer.verify.operations import CROSS_ENTROPY, MASKED_LM_LOSS, PERPLEXITY
from veriformer.verify.operations.losses import ids
from veriformer.verify.strategies import choice, values
from veriformer.verify.trial import Trial

_NUMBERS = {"bf16": (300, 517), "fp16": (2100, 4999), "fp32": (33001, 70001)}
"""Classes beyond those that bf16 and fp16 tell apart, and that 16 bits, with a sign or without, can count."""

_PEAK = 16.0


def _far_classes(operation: Operation, trial: Trial) -> None:
    """Two rows, each with one class far above the others: the target of the first, and not that of the second.

    In halves the formula has no bound over so many classes. This needs none: in whatever order e⁻¹⁶ is added to 1 as
    often as this, the sum is 1 within a hundredth, so that the losses are 0 and 16, and the gradient of the second is 1
    at its high class and −1 at its target.
    """
    number = trial.draw(choice(*_NUMBERS[trial.dtype_name]))
    high, low, target = number - 1 - trial.draw(values()).rng.permutation(40)[:3]
    logits = np.zeros((2, number))
    logits[[0, 1], [high, low]] = _PEAK
    labels = "labels" if operation is MASKED_LM_LOSS else "target"
    arguments = {"logits": trial.tensor(logits), labels: ids(np.stack((high, target)))}
    outcome = trial.call(arguments, wrt=("logits",), cotangent=trial.tensor(np.ones(())))
    mean = _PEAK / 2
    size = math.exp(mean) if operation is PERPLEXITY else 1.0
    result = np.asarray(size if operation is PERPLEXITY else mean)
    gradient = np.zeros(logits.shape)
    gradient[1, [low, target]] = size / 2, -size / 2
    trial.judge(outcome.result, Reference(result, np.asarray(size / 2)), "the loss of a sure class and a missed one")
    trial.judge(outcome.gradient("logits"), Reference(gradient, np.full(gradient.shape, size / 4)), "its gradient")


def _on(operation: Operation) -> Callable[[Trial], None]:
    return lambda trial: _far_classes(operation, trial)


CHECKS = tuple(
    check(f"{o.name}.far_classes", _on(o), dtypes=tuple(_NUMBERS), effort=0.2)
    for o in (CROSS_ENTROPY, PERPLEXITY, MASKED_LM_LOSS)
)
