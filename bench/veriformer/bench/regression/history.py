"""The history of times, in a Parquet file that a person can keep, and where they changed.

Rows of another machine are kept and never compared.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from veriformer.bench.regression.record import History, Level, Regression
from veriformer.bench.statistics import Floors

COLUMNS = ("when", "version", "workload", "fingerprint", "clock", "seconds", "base_seconds", "ratio", "verdict")
_FLOOR = Floors().log
_FEWEST = 8
"""Runs without which no change point is sought."""


class HistoryError(ValueError):
    """The file cannot be read or written; the message says why."""


def extend(file: Path, regressions: Sequence[Regression], version: str) -> pd.DataFrame:
    """Append what was measured, in one step, and give the whole history. Raises HistoryError."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    rows = [_row(one, now, version) for one in regressions if one.seconds]
    new = pd.DataFrame(rows, columns=list(COLUMNS))
    whole = pd.concat([read(file), new], ignore_index=True) if file.exists() else new
    half = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        whole.to_parquet(half, index=False)
        half.replace(file)
    except (OSError, ImportError) as error:
        half.unlink(missing_ok=True)
        raise HistoryError(f"{file}: expected a Parquet file that can be written: {error}") from error
    return whole


def read(file: Path) -> pd.DataFrame:
    """Return the history. Raises HistoryError."""
    try:
        found = pd.read_parquet(file)
    except Exception as error:  # whatever the reader of Parquet raises
        raise HistoryError(f"{file}: expected a history of earlier runs (Parquet): {error}") from error
    if list(found.columns) != list(COLUMNS):
        raise HistoryError(f"{file}: expected the columns {', '.join(COLUMNS)}; got {', '.join(map(str, found))}")
    return found


def histories(history: pd.DataFrame, fingerprint: str) -> list[History]:
    """Return the times of each workload on this machine, with where they settled on another level."""
    here = history[history["fingerprint"] == fingerprint]
    found = []
    for (workload, clock), runs in here.groupby(["workload", "clock"], sort=False):
        seconds = [float(x) for x in runs["seconds"]]
        when, version = ([str(x) for x in runs[name]] for name in ("when", "version"))
        levels = _levels(seconds) if len(seconds) >= _FEWEST else []
        one = History(
            workload=str(workload), clock=str(clock), when=when, version=version, seconds=seconds, levels=levels
        )
        found.append(one)
    return found


def _levels(seconds: Sequence[float]) -> list[Level]:
    """Segment log seconds by PELT; the penalty is BIC's, the noise from differences of neighbours."""
    import ruptures

    values = np.log(np.asarray(seconds, dtype=np.float64))
    steps = np.diff(values)
    noise = float(np.median(np.abs(steps - np.median(steps)))) / 0.6745 / 2**0.5
    if noise == 0:
        noise = float(np.std(steps)) or 1.0
    signal = (values / noise).reshape(-1, 1)
    ends = ruptures.Pelt(model="l2", min_size=3, jump=1).fit(signal).predict(pen=3 * log(len(values)))
    starts = [0, *ends[:-1]]
    middles = [float(np.median(values[a:b])) for a, b in zip(starts, ends, strict=True)]
    changes = [middle - before for before, middle in pairwise(middles)]
    return [
        Level(start=start, ratio=float(np.exp(change)))
        for start, change in zip(starts[1:], changes, strict=True)
        if abs(change) > _FLOOR
    ]


def _row(one: Regression, now: str, version: str) -> dict[str, Any]:
    return {
        "when": now,
        "version": version,
        "workload": one.workload,
        "fingerprint": one.fingerprint,
        "clock": one.clock,
        "seconds": one.seconds.get("head"),
        "base_seconds": one.seconds.get("base"),
        "ratio": one.ratio,
        "verdict": one.verdict.value,
    }
