"""Laws of the cache: in any sequence of calls it equals a list of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from veriformer.verify.judging.arguments import array
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.outcome import Observation, Outcome
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import has_form
from veriformer.verify.laws.family import check
from veriformer.verify.operations.attention.kv_cache.draws import (
    draw_axes,
    draw_extent,
    draw_order,
    draw_pages,
    draw_part,
    draw_rows,
    in_doubt,
    sized,
)
from veriformer.verify.operations.attention.kv_cache.record import KV_CACHE
from veriformer.verify.strategies import choice, extent, sizes, values

Floats = NDArray[np.float64]


TAKES = {"update": 2, "overflow": 2, "reorder": 1, "reset": 0}
"""Number of tensors that each action takes."""


class List:
    """Reference cache over the reals: a list of rows [B, G, d], as simple as it is slow."""

    def __init__(self, window: int | None) -> None:
        self.window = window
        self.rows: list[Floats] = []

    def update(self, new: Floats) -> Floats:
        """Append the rows new [B, G, n, d]; what is to be seen of all, oldest first."""
        n = new.shape[2]
        kept = len(self.rows) if self.window is None else min(len(self.rows), self.window - 1)
        self.rows += [new[:, :, i] for i in range(n)]
        return np.stack(self.rows[len(self.rows) - n - kept :], 2)

    def reorder(self, index: NDArray[np.int64]) -> None:
        """Let element b continue from element index[b]."""
        self.rows = [row[index] for row in self.rows]


def expected(a: Arguments) -> tuple[list[Floats], list[int]]:
    """Return the results of all accepted updates, keys and values in turn, and the length after every action."""
    lists = List(a.get("window")), List(a.get("window"))
    supply, found, lengths = iter(a["rows"]), [], [0]
    for action in a["actions"]:
        if action in ("update", "overflow"):
            pair = array(next(supply)), array(next(supply))
            found += [one.update(new) for one, new in zip(lists, pair, strict=True)] if action == "update" else []
        elif action == "reorder":
            index = next(supply).numpy()
            for one in lists:
                one.reorder(index)
        else:
            lists = List(a.get("window")), List(a.get("window"))
        lengths.append(len(lists[0].rows))
    return found, lengths


def acts_like_a_list(trial: Trial, a: Arguments) -> Outcome:
    """Raise Violation unless the cache shows and counts what a list of rows would: exactly, but for bytes."""
    found, lengths = expected(a)
    outcome = trial.call(a)
    for i, rows in enumerate(found):
        observed = outcome.item(0, i)
        what = f"{'keys' if i % 2 == 0 else 'values'} of update {i // 2}"
        has_form(trial, observed, rows.shape, trial.dtype, what)
        doubt = trial.xp.judgeable(in_doubt(trial.xp, rows))[1] if "quantization" in a else np.zeros_like(rows)
        trial.assert_within_bound(observed, Reference(rows, doubt, constant=True), what)
    counted = outcome.value[1] if isinstance(outcome.value, tuple) else None
    trial.assert_true(counted == lengths, f"lengths are {counted}, not {lengths}", f"{outcome.name}[1] == {lengths}")
    return outcome


class Script:
    """Actions on a cache of a capacity of so many tokens, and the tensors that they take."""

    def __init__(
        self, trial: Trial, capacity: int, window: int | None = None, axes: tuple[int, int, int] | None = None
    ) -> None:
        self.trial = trial
        self.axes = axes or draw_axes(trial)
        self.capacity = capacity
        self.length = 0
        self.actions: list[str] = []
        self.rows: list[torch.Tensor] = []
        self.window = window

    def append(self, n: int) -> None:
        """Append an update of n rows; record an overflow where they exceed the capacity."""
        fits = self.length + n <= self.capacity
        self.actions.append("update" if fits else "overflow")
        self.rows += draw_rows(self.trial, self.axes, [n])
        self.length += n if fits else 0

    def reorder(self) -> None:
        """Append a reorder by indices that may repeat."""
        self.actions.append("reorder")
        self.rows.append(draw_order(self.trial, self.axes[0]))

    def reset(self) -> None:
        """Append a reset."""
        self.actions.append("reset")
        self.length = 0

    def arguments(self, **options: Any) -> dict[str, Any]:
        """Return the call."""
        window = {} if self.window is None else {"window": self.window}
        made = sized(self.trial, self.axes, self.capacity)
        return {**made, **window, **options, "actions": tuple(self.actions), "rows": self.rows}


def _history(trial: Trial) -> None:
    """Check any sequence of actions that ends in an update."""
    axes, capacity = draw_extent(trial, sizes(1, 9))
    story = Script(trial, capacity, draw_part(trial, capacity, 5) if trial.draw(choice(False, True)) else None, axes)
    for _ in range(trial.draw(sizes(0, 6))):
        action = trial.draw(choice("append", "append", "append", "reorder", "reset"))
        if action == "append":
            story.append(draw_part(trial, capacity, 4) if capacity > 9 else trial.draw(sizes(1, 4)))
        else:
            getattr(story, action)()
    if story.length == story.capacity:
        story.reset()
    story.append(1)
    arguments = story.arguments(**trial.option("beside", None, True))
    if "dtype" not in arguments:  # then it is float32, whatever PyTorch's own default
        arguments |= trial.option("default", torch.float64, None)
    acts_like_a_list(trial, arguments)


def _overflow(trial: Trial) -> None:
    """Check appends up to the capacity, beyond it, and up to the capacity again."""
    story = Script(trial, trial.draw(choice(1, 2, 3, 4, 6)), trial.draw(choice(None, 2, 3, 4)))
    if trial.draw(choice(False, True)):
        story.append(trial.draw(sizes(1, story.capacity)))
    story.append(story.capacity - story.length + trial.draw(sizes(1, 2)))
    while story.length < story.capacity:
        story.append(trial.draw(sizes(1, story.capacity - story.length)))
        story.append(story.capacity - story.length + 1)
    acts_like_a_list(trial, story.arguments())


def _window(trial: Trial) -> None:
    """Check chunks below, at and above the window, long after it is full."""
    axes, window = draw_extent(trial, sizes(1, 5), length=(1, 150))
    story = Script(trial, 8 * window + 16, window, axes)
    for _ in range(trial.draw(sizes(2, 7))):
        story.append(trial.draw(choice(1, 1, 2, window, max(1, window - 1), window + 1)))
    acts_like_a_list(trial, story.arguments())


def _reorder(trial: Trial) -> None:
    """Check reorders between updates, in batches of two to four, also before the first update."""
    axes, length = draw_extent(trial, sizes(3, 3), batch=(2, 24), length=(3, 400))
    story = Script(trial, 3 * length + 3, trial.draw(choice(None, None, length)), axes)
    story.axes = (axes[0] if length > 3 else trial.draw(choice(3, 2, 4)), *axes[1:])
    if trial.draw(choice(False, True)):
        story.reorder()
    for _ in range(trial.draw(sizes(1, 3))):
        story.append(draw_part(trial, length, 3))
        story.reorder()
    story.append(1)
    acts_like_a_list(trial, story.arguments())


def _rows_of_many_sizes(trial: Trial, rows: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Scale rows to sizes from 1e-6 (fp16: 1e-4, below which its steps are coarse) to 1e2; one row in eight is 0."""
    least = -4.0 if trial.dtype is torch.float16 else -6.0
    rng = trial.draw(values()).rng
    resized = []
    for x in rows:
        decades = rng.uniform(least, 2.0, (*x.shape[:3], 1)) * (rng.random((*x.shape[:3], 1)) < 0.8)
        size = np.where(rng.random((*x.shape[:3], 1)) < 0.125, 0.0, 10.0**decades)
        resized.append(trial.tensor(array(x) * size))
    return resized


def _int8(trial: Trial) -> None:
    """Check each entry within half a step of its row, and its rounding, also after a reset or a refused update."""
    axes, capacity = draw_extent(trial, sizes(8, 8), length=(8, 100))
    story = Script(trial, capacity, draw_part(trial, capacity, 2) if trial.draw(choice(False, True)) else None, axes)
    for n in [*draw_pages(trial, capacity - trial.draw(sizes(1, 4))), *[1] * trial.draw(choice(0, 2))]:
        story.append(n)
        if trial.draw(choice(False, False, False, True)):
            story.reset()
    story.rows = _rows_of_many_sizes(trial, story.rows)
    if trial.draw(choice(False, True)):
        story.reorder()
        story.append(1)
    arguments = story.arguments(quantization="int8")
    _shows_what_it_stored(trial, arguments, acts_like_a_list(trial, arguments))


def _shows_what_it_stored(trial: Trial, a: Arguments, outcome: Outcome) -> None:
    """Raise Violation unless an update shows earlier rows bit for bit as the previous one, without reorder or reset
    between.

    What is shown is what is stored: a row must not be closer to what was given while it is new.
    """
    supply, update, kept = iter(a["rows"]), -1, False
    for action in a["actions"]:
        given = [next(supply) for _ in range(TAKES[action])]
        if action == "update":
            update += 1
            for i in (2 * update, 2 * update + 1) if kept else ():
                _shown_again(trial, outcome.item(0, i - 2), outcome.item(0, i), given[0].shape[2])
        kept = action == "update" or (kept and action == "overflow")


def _shown_again(trial: Trial, before: Observation, now: Observation, new: int) -> None:
    """Raise Violation unless all but the new rows of one update are the last ones of the update before."""
    old = now.value.shape[2] - new
    first = before.value.shape[2] - old
    same = torch.equal(before.value[:, :, first:], now.value[:, :, :old])
    said = f"torch.equal({before.expression}[:, :, {first}:], {now.expression}[:, :, :{old}])"
    trial.assert_true(same, "rows that an update has shown are others in the next", said)


def _long(trial: Trial) -> None:
    """Check pages filled to the edge and beyond it, at once or in two, then token by token, with reorders."""
    trial.only_large(4.0)
    axes, length = draw_extent(trial, sizes(1, 1), length=(15, 1200))
    window = trial.draw(extent(1, length)) if trial.draw(choice(False, True, True)) else None
    story = Script(trial, length + 5 + trial.draw(choice(0, 1)) * trial.draw(extent(1, 300)), window, axes)
    for n in draw_pages(trial, length):
        story.append(n)
        if trial.draw(choice(False, True)):
            story.reorder()
    if story.actions[-1] != "reorder":
        story.reorder()
    story.append(trial.draw(sizes(1, 3)))
    acts_like_a_list(trial, story.arguments())


CHECKS = (
    check(f"{KV_CACHE.name}.history", _history, effort=2, dtypes=("fp64", "fp32", "bf16")),
    check(f"{KV_CACHE.name}.overflow", _overflow, dtypes=("fp32", "fp16")),
    check(f"{KV_CACHE.name}.window", _window, dtypes=("fp32", "bf16")),
    check(f"{KV_CACHE.name}.reorder", _reorder, dtypes=("fp32", "fp16")),
    check(f"{KV_CACHE.name}.long", _long, effort=1, dtypes=("fp32", "bf16")),
    check(f"{KV_CACHE.name}.int8", _int8, effort=1.5, dtypes=("fp32", "bf16", "fp16", "fp64")),
)
