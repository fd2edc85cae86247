"""Vocabulary tables shared by token embeddings and the head of a language model."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Trial
from veriformer.verify.scripts.script import literal
from veriformer.verify.strategies import KINDS, sizes, values, widths


def table(trial: Trial) -> torch.Tensor:
    """Draw a small table [V, d]; V and d are seldom equal."""
    return trial.tensor(trial.draw(values()).array(trial.draw(sizes(1, 7)), trial.draw(widths(5))))


_RANGES: dict[str, tuple[int, int]] = {"rows": (1, 5000), "vocabulary": (1, 2**18), "d": (1, 1500)}


def large_table(
    trial: Trial, kinds: Sequence[str] = KINDS, **ranges: tuple[int, int]
) -> tuple[tuple[int, ...], torch.Tensor] | None:
    """Return the axes of the rows that are read or met, and a table [V, d], all drawn together; or None.

    Products, or one-hot rows: 64 products of a matrix cost as much as a score, and so do 8 entries.
    """
    found = trial.sizes(
        {**_RANGES, **ranges},
        lambda s: s["rows"] * (s["d"] / 8 + s["vocabulary"] * (1 + s["d"] / 64)) + s["vocabulary"] * s["d"] / 8,
    )
    if found is None:
        return None
    return trial.axes(found["rows"]), trial.tensor(
        trial.draw(values(tuple(kinds))).array(found["vocabulary"], found["d"])
    )


def equals_exactly(trial: Trial, y: Observation, wanted: torch.Tensor, message: str) -> None:
    """Raise Violation unless a result is exactly this."""
    trial.assert_true(torch.equal(y.value, wanted), message, f"torch.equal({y.expression}, {literal(wanted)})")
