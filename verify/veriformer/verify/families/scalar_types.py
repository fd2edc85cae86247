"""Calls in other forms: axes longer than a tile, and NumPy scalars for Python numbers."""

from __future__ import annotations

import numpy as np

from veriformer.verify.contract import dtypes
from veriformer.verify.families.judged import JUDGED
from veriformer.verify.judging.check import Check
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.laws.family import over
from veriformer.verify.laws.gradients import judge_with_gradients
from veriformer.verify.laws.numbers import number
from veriformer.verify.operations.registry import OPERATIONS


def _long(operation: OpInfo, trial: Trial) -> None:
    assert operation.sample_large is not None
    trial.only_large(4.0)
    judge_with_gradients(trial, operation, operation.sample_large(trial))


def _numpy_numbers(operation: OpInfo, trial: Trial) -> None:
    arguments = operation.sample(trial)
    changed = {key: number(value) for key, value in arguments.items()}
    trial.assume(any(isinstance(value, np.generic) for value in changed.values()))
    agrees(trial, operation, arguments, trial.call(changed), operation.exact(trial, arguments, use_exact_oracle=False))


LENGTHY = tuple(operation for operation in OPERATIONS if operation.sample_large is not None)
"""Operations that kernels compute in tiles, or row by row; attention has checks of its own."""


_COUNTED = ("token_embedding", "greedy", "top_k_filter", "alibi_bias", "sinusoidal_encoding", "smooth_labels")
"""Operations without sums: their references stay sharp far out even in halves, which do not count that far."""

_ENTRYWISE = ("residual", "rope")
"""Operations whose entries are sums of one or two products, which halves judge as well."""


def _long_of(operation: OpInfo) -> tuple[Check, ...]:
    """Return the check of long axes, with three times as many examples without a gradient, for they cost no more."""
    sharp = operation.name in (*_COUNTED, *_ENTRYWISE)
    return over(
        [operation],
        "long",
        _long,
        effort=1 if operation.vjps else 3,
        dtypes=dtypes.NAMES if sharp else ("fp64", "fp32"),
    )


CHECKS = (
    *(check for operation in LENGTHY for check in _long_of(operation)),
    *over(JUDGED, "numpy_numbers", _numpy_numbers, effort=0.5),
)
