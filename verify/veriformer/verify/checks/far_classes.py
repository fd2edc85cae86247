"""Losses over vocabularies in which narrow numbers lose count of the classes."""

from __future__ import annotations

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

_PEAK = 30.0


def _far_classes(operation: Operation, trial: Trial) -> None:
    """Each row has one class far above the others, and this is its target: the loss is 0, and e^30 for any other.

    In halves the formula has no bound over so many classes. This needs none: in whatever order e⁻³⁰ is added to 1 as
    often as this, the sum is 1 within its rounding, and 30 less its logarithm is 30, in bf16 within an eighth.
    """
    number = trial.draw(choice(*_NUMBERS[trial.dtype_name]))
    rng = trial.draw(values()).rng
    target = number - 1 - rng.permutation(40)[:2]
    logits = np.zeros((2, number))
    logits[[0, 1], target] = _PEAK
    labels = "labels" if operation is MASKED_LM_LOSS else "target"
    arguments = {"logits": trial.tensor(logits), labels: ids(target)}
    outcome = trial.call(arguments, wrt=("logits",), cotangent=trial.tensor(np.ones(())))
    exact = 1.0 if operation is PERPLEXITY else 0.0
    trial.judge(outcome.result, _coarse(np.asarray(exact)), "the loss of classes that are certain")
    trial.judge(outcome.gradient("logits"), _coarse(np.zeros(logits.shape)), "the gradient where nothing is in doubt")


def _coarse(exact: np.ndarray) -> Reference:
    """Within a half of what it must be."""
    return Reference(exact, np.full(exact.shape, 0.5), scale=_PEAK, constant=True)


def _on(operation: Operation) -> Callable[[Trial], None]:
    return lambda trial: _far_classes(operation, trial)


CHECKS = tuple(
    check(f"{o.name}.far_classes", _on(o), dtypes=tuple(_NUMBERS), effort=0.2)
    for o in (CROSS_ENTROPY, PERPLEXITY, MASKED_LM_LOSS)
)
