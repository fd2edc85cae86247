"""Times in the format that pytest-benchmark stores and compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pytest_benchmark.plugin import pytest_benchmark_generate_machine_info
from pytest_benchmark.stats import Stats
from pytest_benchmark.utils import get_commit_info


def document(seconds: Mapping[str, Sequence[float]], extra: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the document that ``pytest-benchmark compare`` reads: the seconds of each benchmark, and further facts on
    it.
    """
    return {
        "machine_info": pytest_benchmark_generate_machine_info(),  # type: ignore[no-untyped-call]
        "commit_info": get_commit_info(),  # type: ignore[no-untyped-call]
        "benchmarks": [_benchmark(name, times, dict(extra.get(name, {}))) for name, times in seconds.items()],
        "datetime": datetime.now(UTC).isoformat(),
        "version": "5.0.0",
    }


def _benchmark(name: str, seconds: Sequence[float], extra: dict[str, Any]) -> dict[str, Any]:
    found = Stats()  # type: ignore[no-untyped-call]
    for value in seconds:
        found.update(value)  # type: ignore[no-untyped-call]
    shown = {field: getattr(found, field) for field in found.fields}
    return {
        "group": None,
        "name": name,
        "fullname": f"veriformer::{name}",
        "params": None,
        "param": None,
        "extra_info": extra,
        "options": {},
        "stats": {**shown, "iterations": 1, "data": list(seconds)},
    }
