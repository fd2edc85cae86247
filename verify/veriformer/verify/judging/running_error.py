"""Running-error arithmetic of each dtype, in which references and their bounds are computed."""

from __future__ import annotations

import functools

from veriformer.spec.arithmetic import Float, RunningError
from veriformer.verify.contract import dtypes


@functools.cache
def running_error(dtype: str) -> RunningError:
    """Return the running-error arithmetic of a dtype over the exact oracle."""
    return RunningError(dtypes.format_of(dtypes.TORCH[dtype]))


@functools.cache
def over_float64(dtype: str) -> RunningError:
    """Return the running-error arithmetic of a dtype over float64: cheap; fp64 bounds are a bit wider."""
    return RunningError(dtypes.format_of(dtypes.TORCH[dtype]), oracle=Float())
