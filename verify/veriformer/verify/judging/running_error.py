"""Running-error arithmetic of each dtype, in which references and their bounds are computed."""

from __future__ import annotations

import functools

from veriformer.spec.arithmetic import Float, RunningError
from veriformer.verify.contract import dtypes


@functools.cache
def running_error(dtype: str) -> RunningError:
    """The running-error arithmetic of a dtype, over the exact oracle."""
    return RunningError(dtypes.format_of(dtypes.TORCH[dtype]))


@functools.cache
def over_float64(dtype: str) -> RunningError:
    """The same over float64: cheap, also for fp64, whose bounds are then a few roundoffs wider."""
    return RunningError(dtypes.format_of(dtypes.TORCH[dtype]), oracle=Float())
