"""The head of a language model: its record and its laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.laws.equality import finite, sums
from veriformer.verify.laws.family import check
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.layers.vocabulary import equals_exactly, table
from veriformer.verify.strategies import leading_shapes, sizes, values

LM_HEAD = operation(
    "lm_head", separate=("result", "gradient of h", "gradient of weight"), structural_dtypes=("fp32", "bf16")
)


def _judged(trial: Trial, arguments: Arguments) -> tuple[Observation, Reference]:
    reference = LM_HEAD.exact(trial, arguments, use_exact_oracle=False)[0]
    outcome = trial.call(arguments)
    agrees(trial, LM_HEAD, arguments, outcome, [reference])
    return outcome.result, reference


def _linearity(trial: Trial) -> None:
    weight = table(trial)
    shape = (*trial.draw(leading_shapes(2, 3)), weight.shape[1])
    rng = trial.draw(values()).rng
    a, b = (trial.tensor(rng.integers(-6, 7, shape) / 4) for _ in range(2))
    found = [_judged(trial, {"h": h, "weight": weight}) for h in (a, b, a + b)]
    size = max(float(np.abs(reference.exact).max(initial=0.0)) for _, reference in found)
    bound = sum(reference.bound for _, reference in found) + 2.0**-50 * size
    law = Reference(np.zeros(np.shape(bound)), np.asarray(bound), scale=size, constant=True)
    trial.assert_within_bound(
        trial.observe(sums, *(y for y, _ in found)), law, "logits of two features less those of their sum"
    )
    zero = trial.call({"h": torch.zeros_like(a), "weight": weight}).result
    equals_exactly(trial, zero, torch.zeros_like(found[0][0].value), "the logits of zero are not zero")


def _one_hot(trial: Trial) -> None:
    weight = table(trial)
    h: dict[str, Any] = {"h": torch.eye(weight.shape[1], dtype=trial.dtype), "weight": weight}
    equals_exactly(trial, trial.call(h).result, weight.mT.contiguous(), "a feature alone does not read its column")


def _products_range(trial: Trial) -> None:
    """Check products that leave the range of fp16, in pairs that cancel; one row of the table has none of them."""
    n, pairs, size = trial.draw(sizes(1, 3)), trial.draw(sizes(1, 3)), trial.draw(sizes(1, 4))
    rng = trial.draw(values()).rng
    h, w = rng.integers(256, 300, (n, pairs)), rng.integers(256, 300, (size, pairs))
    features = np.concatenate((h, h, rng.integers(2, 5, (n, 2))), -1)
    rows = np.concatenate((w, -w, rng.integers(-3, 4, (size, 2))), -1)
    plain = np.concatenate((np.zeros((1, 2 * pairs)), rng.integers(2, 5, (1, 2))), -1)
    arguments = {"h": trial.tensor(features), "weight": trial.tensor(np.concatenate((rows, plain)))}
    result, _ = _judged(trial, arguments)
    finite(trial, result, "an inner product")


CHECKS = (
    check("lm_head.linearity", _linearity, dtypes=("fp64", "fp32")),
    check("lm_head.one_hot", _one_hot),
    check("lm_head.range", _products_range, dtypes=("fp16",)),
)
