"""Pairing of the runs of two sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from veriformer.verify.results import Results

Pair = tuple[str, Results | None, Results | None]
"""The name of the target, and its old and its new run, either of which there may not be."""


def pairs(old: Sequence[Results], new: Sequence[Results]) -> Iterator[Pair]:
    """Runs are matched by target and device; where each side holds a single run, these two whatever they are called."""
    if len(old) == len(new) == 1:
        yield str(new[0].implementation["target"]), old[0], new[0]
        return
    before, after = _by_name(old), _by_name(new)
    for name in dict.fromkeys([*after, *before]):
        yield name[0] if name[1] in (None, "cpu") else f"{name[0]} on {name[1]}", before.get(name), after.get(name)


def _by_name(runs: Sequence[Results]) -> dict[tuple[str, str | None], Results]:
    return {(str(run.implementation["target"]), run.environment["device"]): run for run in runs}
