"""What the key-value cache and attention over it share: keys and values, drawn in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch

from veriformer.spec.arithmetic.exact_inputs import exactly_equal
from veriformer.spec.arithmetic.running_error import RunningError, RunningErrorArray
from veriformer.spec.efficient.int8 import LEVELS, int8_half_step
from veriformer.verify.judging.trial import Trial
from veriformer.verify.strategies import KINDS, choice, sizes, values, widths


def draw_rows(
    trial: Trial, axes: tuple[int, int, int], chunks: Sequence[int], kinds: Sequence[str] = KINDS
) -> list[Any]:
    """Keys and values [B, G, n, d] for each chunk, in turn; axes are B, G, d."""
    b, g, d = axes
    n = sum(chunks)
    whole = [trial.tensor(trial.draw(values(tuple(kinds))).array(b, g, n, d)) for _ in "kv"]
    parts = [torch.tensor_split(x, list(accumulate(chunks))[:-1], 2) for x in whole]
    return [part.contiguous() for pair in zip(*parts, strict=True) for part in pair]


def sized(trial: Trial, axes: tuple[int, int, int], max_length: int) -> dict[str, Any]:
    """The arguments that make a cache for rows of these axes B, G, d."""
    b, g, d = axes
    a = {"batch": b, "num_kv_heads": g, "max_length": max_length, "head_dim": d}
    return a if trial.dtype is torch.float32 and trial.draw(choice(True, False)) else {**a, "dtype": trial.dtype}


def draw_order(trial: Trial, batch: int) -> torch.Tensor:
    """From which element each goes on: from any, or each from the next, an order that from three on is no inverse."""
    if batch > 2 and trial.draw(choice(True, False, False)):
        return torch.arange(batch).roll(trial.draw(choice(-1, 1)))
    return torch.as_tensor(trial.draw(values()).rng.integers(0, batch, batch))


def draw_axes(trial: Trial) -> tuple[int, int, int]:
    """B, G, d of a cache."""
    return trial.draw(sizes(1, 3)), trial.draw(sizes(1, 3)), trial.draw(widths(5))


def in_doubt(xp: Any, x: Any) -> Any:
    """What a cache of bytes may return for rows x: anything within half a step of each row, and the rounding of it.

    The quotient that is rounded to a code, the step, and their product are computed in the dtype at worst.
    """
    if not isinstance(xp, RunningError):
        return x
    x = xp.asarray(x)
    absmax = xp.max(abs(x), axis=-1, keepdims=True)
    there_and_back = x * LEVELS / xp.where(exactly_equal(absmax, 0), 1, absmax) * (absmax / LEVELS)
    half = int8_half_step(xp, x)
    return RunningErrorArray(xp, x.value, there_and_back.error + half.magnitude + half.error, x.magnitude)


def draw_call(
    trial: Trial,
    *,
    chunks: Sequence[int] | None = None,
    new: int | None = None,
    kinds: Sequence[str] = KINDS,
    axes: tuple[int, int, int] | None = None,
) -> dict[str, Any]:
    """New tokens over a past that came in these chunks, or in drawn ones; axes B, G, d; no options."""
    b, groups, d = axes or draw_axes(trial)
    heads = groups * trial.draw(sizes(1, 3))
    before = [trial.draw(sizes(1, 3)) for _ in range(trial.draw(sizes(0, 2)))] if chunks is None else list(chunks)
    n = trial.draw(sizes(1, 4)) if new is None else new
    rows = draw_rows(trial, (b, groups, d), [*before, n], kinds)
    q = trial.tensor(trial.draw(values(tuple(kinds))).array(b, heads, n, d))
    room = sum(before) + n + trial.draw(choice(0, 1, 4))
    return {"q_new": q, "k_new": rows[-2], "v_new": rows[-1], "past": rows[:-2], "max_length": room}


LENGTHS = (130, 257, 65, 17, 128, 64, 129, 127, 63, 16, 15)
"""Rows of a cache around the pages of 16, 64, 128 and 256 in which it may keep them."""


def draw_pages(trial: Trial, length: int) -> list[int]:
    """The chunks in which so many rows come: all at once or in two, then token by token."""
    cut, single = trial.draw(choice(0, 1, length // 2)), trial.draw(sizes(0, 2))
    return [n for n in (length - cut, cut) if n] + [1] * single
