"""Rotation by angles, shared by the forms of rotary embeddings: tables of angles, and features laid out for one
sequence."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import NotOffered

BASES = ("base", "theta", "theta_base", "rope_theta", "rope_base", "freq_base")
BASE = 10000.0
LONGEST = 4096
"""Positions that a table is made for at most."""

POSITIONS = (
    *("positions", "token_positions", "position_ids", "pos_ids", "pos", "position"),
    *("input_pos", "input_positions", "seq_positions"),
)
"""Usual names of the positions that features stand at."""

STARTS = (
    "start_pos",
    "offset",
    "pos_offset",
    "start",
    "start_position",
    "seq_offset",
    "position_offset",
    "past_length",
)
"""Usual names of the position of the first token."""

LAYOUTS = ("[B,H,n,d]", "[B,n,H,d]", "[n,B,H,d]", "[B,n,d]")
WORDS = ({"rope"}, {"rotary"}, {"rotate"}, {"rotated"}, {"rotation"})


def usual_tables(kind: str, d: int, n: int, base: float | None) -> tuple[Tensor, ...]:
    """Return tables in float64: per pair, every pair repeated, or complex numbers."""
    frequencies = (base or BASE) ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angles = torch.outer(torch.arange(n, dtype=torch.float64), frequencies)
    if kind == "complex":
        return (torch.polar(torch.ones_like(angles), angles),)
    if "halves" in kind:
        angles = torch.cat((angles, angles), -1)
    elif "twice" in kind:
        angles = angles.repeat_interleave(2, -1)
    return (angles,) if "angles" in kind else (angles.cos(), angles.sin())


PAIRS_OF_TABLES = ("halves", "pairs", "twice")
SINGLE_TABLES = ("complex", "angles", "angles twice", "angles halves")


def takes_angles(candidate: Candidate, name: str) -> bool:
    """Return whether the code of a function takes cosines of an argument as it is: then it holds angles."""
    try:
        code = inspect.getsource(inspect.unwrap(candidate.thing))
    except (OSError, TypeError):  # made in memory, or in C
        return False
    return re.search(rf"\b{re.escape(name)}\.cos\(|\bcos\({re.escape(name)}\)", code) is not None


def rotate_to_halves(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    """Rotate features whose pairs come in interleaved and go out by halves."""
    d = x.shape[-1]
    cos, sin = (table[positions.to(torch.int64)] for table in usual_tables("pairs", d, LONGEST, base))
    a, b = x[..., 0::2].double(), x[..., 1::2].double()
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1).to(x.dtype)


def own_frequencies(turn: Callable[..., Tensor]) -> dict[str, Callable[..., Tensor]]:
    """Return rotations by the angles that a rotary function has at position 1, whatever they are, by how it pairs."""

    def by(first: Callable[[int], Tensor], apart: Callable[[int], int]) -> Callable[..., Tensor]:
        def rotated(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
            d = x.shape[-1]
            one, given = first(d), {"base": base} if "base" in inspect.signature(turn).parameters else {}
            found = turn(torch.eye(d, dtype=x.dtype)[one][:, None], torch.ones(1, dtype=torch.int64), **given)[:, 0]
            other = one + apart(d)
            rows = torch.arange(len(one))
            angles = torch.atan2(found[rows, other], found[rows, one]).double() * positions[..., None]
            a, b, cos, sin = x[..., one].double(), x[..., other].double(), angles.cos(), angles.sin()
            result = torch.empty_like(x)
            result[..., one] = (a * cos - b * sin).to(x.dtype)
            result[..., other] = (a * sin + b * cos).to(x.dtype)
            return result

        return rotated

    return {
        "frequencies of its own": by(lambda d: torch.arange(0, d - 1, 2), lambda d: 1),
        "frequencies of its own, by halves": by(lambda d: torch.arange(d // 2), lambda d: d // 2),
    }


RIVALS = {"pairs that come in side by side and go out by halves": rotate_to_halves}


ROWS = ("[n]", "[B,n]")
"""Axes of the positions that code is given."""


def places(positions: Tensor, n: int) -> Tensor:
    """Return positions as one row of n for the whole call. Raises NotOffered for others than integers from 0 on."""
    rows = positions.reshape(-1, positions.shape[-1])
    if not bool((rows == rows[:1]).all()):
        raise NotOffered("positions: one row is taken for all")
    row = rows[0]
    if row.is_floating_point() and not bool((row == row.round()).all()):
        raise NotOffered("positions: whole numbers are taken")
    row = row.to(torch.int64)
    row = row.expand(n) if row.numel() == 1 else row  # the contract's broadcast, which tables have not
    if row.numel() and (int(row.min()) < 0 or int(row.max()) >= LONGEST):
        raise NotOffered(f"positions: from 0 to {LONGEST - 1} are taken")
    return row


def spread(x: Tensor, layout: str) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Convert features ``[..., n, d]`` to another layout; return them and the inverse."""
    flat = x.reshape(-1, *x.shape[-2:])
    if layout == "[B,n,d]":
        return flat, lambda y: y.reshape(x.shape)
    heads = 3 if flat.shape[0] % 3 == 0 else 1
    four = flat.reshape(-1, heads, *x.shape[-2:])
    order = {"[B,H,n,d]": (0, 1, 2, 3), "[B,n,H,d]": (0, 2, 1, 3), "[n,B,H,d]": (2, 0, 1, 3)}[layout]
    back = tuple(order.index(axis) for axis in range(4))
    return four.permute(order).contiguous(), lambda y: y.permute(back).reshape(x.shape)


def turn_each(turn: Callable[[Tensor, Tensor], Any], x: Tensor) -> Tensor:
    """Return what a call that turns queries and keys together makes of features as queries and as keys, in turn."""
    return _interleave_rows(turn(x, -x)[0], turn(-x, x)[1])


EXTRA = 2
"""Features behind those that are turned, where not all are."""


def turn_beside_others(turn: Callable[[Tensor], Tensor], x: Tensor) -> Tensor | None:
    """Rotate features that precede others, which must be left unchanged; None where they are not."""
    try:
        with torch.no_grad():
            found = turn(torch.cat((x, x[..., :1].expand(*x.shape[:-1], EXTRA)), -1))
    except Exception:  # it turns all that it is given
        return None
    same = isinstance(found, Tensor) and found.shape == (*x.shape[:-1], x.shape[-1] + EXTRA) and found.dtype == x.dtype
    kept = same and torch.equal(found[..., x.shape[-1] :], x[..., :1].expand(*x.shape[:-1], EXTRA))
    return found[..., : x.shape[-1]] if kept else None


def _interleave_rows(one: Any, other: Any) -> Tensor:
    """Return the rows of two results for the same features in turn, so that both are judged, with their gradients."""
    if not isinstance(other, Tensor) or other.shape != one.shape:
        raise NotOffered("q and k come out of different shapes")
    last = torch.arange(one.numel()).reshape(one.shape) if one.numel() else torch.zeros(one.shape)
    row = (last // max(1, one.shape[-1])) % 2 == 1
    return torch.where(row, other, one)
