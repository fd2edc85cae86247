"""Ways to pass positions to a function that rotates by tables: rows, positions, or a start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.candidate import Candidate

ROWS, OF_BATCH, OF_ALL, START = (
    "by the rows of its tables",
    "by positions [B,n]",
    "by positions [n]",
    "by where they start",
)


def position_ways(candidate: Candidate, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the ways in which a call may tell where its features stand; nothing where its tables alone say it."""
    if "positions" in names:
        demanded = candidate.parameters[names["positions"]].default is not None
        return (OF_BATCH, OF_ALL) if demanded else (OF_BATCH, OF_ALL, ROWS)
    return (START,) if "start" in names else ()


def are_whole(way: str, row: Tensor) -> bool:
    """Return whether tables of all positions are given, of which the code takes those at the positions in a row."""
    return way in (OF_BATCH, OF_ALL) or (way == START and is_contiguous(row))


def place_arguments(names: Mapping[str, str], way: str, rows: Tensor) -> dict[str, Any]:
    """Return the arguments that tell where features stand. rows: the positions ``[B, n]`` of each text."""
    if way == OF_BATCH:
        return {names["positions"]: rows}
    if way == OF_ALL:
        return {names["positions"]: rows[-1]}
    if way == START:
        return {names["start"]: int(rows[-1, 0]) if rows.shape[1] and is_contiguous(rows[-1]) else 0}
    return {}


def turn_beside_other_texts(
    turn: Callable[[Tensor, Tensor], Tensor], x: Tensor, rows: Tensor, axis: int
) -> Tensor | None:
    """Rotate features in a batch after texts with other positions; None where it fails."""
    try:
        with torch.no_grad():
            found = turn(torch.cat((x, x), axis), torch.cat((rows.flip(-1), rows)))
    except Exception:  # one row of positions is all that it takes
        return None
    size = x.shape[axis]
    return found.narrow(axis, size, size) if found.shape[axis] == 2 * size else None


def is_contiguous(row: Tensor) -> bool:
    """Return whether positions follow each other."""
    return row.numel() > 0 and torch.equal(row, torch.arange(len(row)) + row[0])
