"""The same call in other forms: axes longer than a tile, and NumPy's numbers for Python's."""

from __future__ import annotations

import numpy as np

from veriformer.verify.families.judged import JUDGED
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
"""The operations that kernels compute in tiles, or row by row; attention has checks of its own."""


_COUNTED = ("token_embedding", "greedy", "top_k_filter", "alibi_bias", "sinusoidal_encoding", "smooth_labels")
"""Those that sum nothing: what they say of an entry far out is as sharp in halves, which do not count that far."""


CHECKS = (
    *over([o for o in LENGTHY if o.name not in _COUNTED], "long", _long, effort=1, dtypes=("fp64", "fp32")),
    *over([o for o in LENGTHY if o.name in _COUNTED], "long", _long, effort=1),
    *over(JUDGED, "numpy_numbers", _numpy_numbers, effort=0.5),
)
