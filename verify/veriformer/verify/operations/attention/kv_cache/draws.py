"""Draws of the key-value cache and of attention over it: keys and values in pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import hypothesis.strategies as st
import torch

from veriformer.spec.arithmetic.exact_inputs import exactly_equal
from veriformer.spec.arithmetic.running_error import RunningError, RunningErrorArray
from veriformer.spec.efficient.int8 import LEVELS, int8_half_step
from veriformer.verify.judging.trial import Trial
from veriformer.verify.strategies import KINDS, choice, extent, sizes, values, widths


def draw_rows(
    trial: Trial, axes: tuple[int, int, int], chunks: Sequence[int], kinds: Sequence[str] = KINDS
) -> list[Any]:
    """Draw keys and values [B, G, n, d] for each chunk, in turn; axes are B, G, d."""
    b, g, d = axes
    n = sum(chunks)
    whole = [trial.tensor(trial.draw(values(tuple(kinds))).array(b, g, n, d)) for _ in "kv"]
    parts = [torch.tensor_split(x, list(accumulate(chunks))[:-1], 2) for x in whole]
    return [part.contiguous() for pair in zip(*parts, strict=True) for part in pair]


def sized(trial: Trial, axes: tuple[int, int, int], max_length: int) -> dict[str, Any]:
    """Return the arguments that make a cache for rows of these axes B, G, d."""
    b, g, d = axes
    a = {"batch": b, "num_kv_heads": g, "max_length": max_length, "head_dim": d}
    return a if trial.dtype is torch.float32 and trial.draw(choice(True, False)) else {**a, "dtype": trial.dtype}


def draw_order(trial: Trial, batch: int) -> torch.Tensor:
    """Draw an order [B] to reorder by: any, or a rotation, which from three elements on is not its own inverse."""
    if batch > 2 and trial.draw(choice(True, False, False)):
        return torch.arange(batch).roll(trial.draw(choice(-1, 1)))
    return torch.as_tensor(trial.draw(values()).rng.integers(0, batch, batch))


Axes = tuple[int, int, int]
"""B, G, d of a cache."""

RANGES: dict[str, tuple[int, int]] = {"batch": (1, 96), "groups": (1, 64), "d": (1, 256), "length": (1, 1200)}
"""Smallest and largest size of the axes of a cache; the length is that of all tokens."""

_SHOWN = 0.5
"""Cost of an entry: every update shows all rows, keys and values, but computes nothing of them."""


def draw_axes(trial: Trial) -> Axes:
    """Draw small B, G, d of a cache."""
    return trial.draw(sizes(1, 3)), trial.draw(sizes(1, 3)), trial.draw(widths(5))


def draw_extent(trial: Trial, small: st.SearchStrategy[int], **ranges: tuple[int, int]) -> tuple[Axes, int]:
    """Draw B, G, d, and how many tokens: as many as this strategy draws, or drawn together with the axes."""
    chosen = {**RANGES, **ranges}
    found = trial.sizes(chosen, lambda s: _SHOWN * s["batch"] * s["groups"] * s["d"] * s["length"])
    if found is None:
        return draw_axes(trial), trial.draw(small)
    b, g, d, length = (found[name] for name in chosen)
    return (b, g, d), length


def draw_part(trial: Trial, whole: int, few: int) -> int:
    """Draw a number of tokens of a whole: a few, or any, where the whole is more."""
    return trial.draw(extent(1, whole) if whole > 2 * few else sizes(1, few))


def in_doubt(xp: Any, x: Any) -> Any:
    """Return the rows x with the error bound of an int8 cache: half a step of each row, and the rounding of it.

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
    least: int = 0,
) -> dict[str, Any]:
    """Draw new tokens over a past in these chunks, or in at least so many drawn ones; axes: B, G, d; no options."""
    large = None if axes else trial.sizes(_CALLS, _work)
    b, groups, d = axes or ((large["batch"], large["groups"], large["d"]) if large else draw_axes(trial))
    heads = groups * (large["repeats"] if large else trial.draw(sizes(1, 3)))
    if chunks is not None:
        before = list(chunks)
    elif large:
        before = draw_pages(trial, large["past"])
    else:
        before = [trial.draw(sizes(1, 3)) for _ in range(trial.draw(sizes(least, 2)))]
    n = (large["new"] if large else trial.draw(sizes(1, 4))) if new is None else new
    rows = draw_rows(trial, (b, groups, d), [*before, n], kinds)
    q = trial.tensor(trial.draw(values(tuple(kinds))).array(b, heads, n, d))
    room = sum(before) + n + trial.draw(choice(0, 1, 4))
    return {"q_new": q, "k_new": rows[-2], "v_new": rows[-1], "past": rows[:-2], "max_length": room}


_CALLS: dict[str, tuple[int, int]] = {
    "batch": (1, 24),
    "groups": (1, 16),
    "repeats": (1, 8),
    "d": (2, 256),
    "past": (1, 900),
    "new": (1, 60),
}


def _work(s: Mapping[str, int]) -> float:
    n = s["past"] + s["new"]
    per_group = s["repeats"] * s["new"] * n * (1 + s["d"] / 32) + n * s["d"] / 2
    return s["batch"] * s["groups"] * per_group


def draw_pages(trial: Trial, length: int) -> list[int]:
    """Draw the chunks in which so many rows come: all at once or in two, then token by token."""
    cut, single = min(length, trial.draw(choice(0, 1, length // 2))), trial.draw(sizes(0, 2))
    return [n for n in (length - cut, cut) if n] + [1] * single
