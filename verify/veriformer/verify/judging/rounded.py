"""Rounded arithmetics of the dtypes, in which references and their bounds are computed."""

from __future__ import annotations

import functools

from veriformer.spec.arithmetic import Float, RunningError
from veriformer.verify.contract import dtypes

_ROUNDED: dict[str, RunningError] = {}


def rounded(dtype: str) -> RunningError:
    """The rounded arithmetic of a dtype by its record name, made once."""
    if dtype not in _ROUNDED:
        _ROUNDED[dtype] = RunningError(dtypes.format_of(dtypes.TORCH[dtype]))
    return _ROUNDED[dtype]


@functools.cache
def over_float64(dtype: str) -> RunningError:
    """Rounded arithmetic of a dtype over float64: cheap, also for fp64, whose bounds are then a few roundoffs wider."""
    return RunningError(dtypes.format_of(dtypes.TORCH[dtype]), oracle=Float())
