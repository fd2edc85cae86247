"""Draws and invalid calls of top-k, top-p and greedy choice: scores, ordinary, long and bad."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.spec.arithmetic import RunningError
from veriformer.spec.generation.choices import exact_values, ranks
from veriformer.spec.generation.top_p_filter import mass_before
from veriformer.spec.scores.softmax import softmax
from veriformer.verify.judging.op_info import InvalidCall
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.strategies import choice, extent, leading_shapes, sizes, values, widths


def undecided(xp: RunningError, logits: Any, p: float) -> np.ndarray:
    """Return the tokens for which rounding decides whether the mass before them exceeds p, in any summation order."""
    given, before = xp.asarray(p), mass_before(xp, logits)
    gap = np.abs((exact_values(before) - exact_values(given)).astype(np.float64))
    slack = np.maximum.reduce([before.error, *(form.error for form in _other_sums(xp, logits, before))])
    return np.asarray((gap <= slack + given.error + (1 - given).error) & (ranks(logits) > 0))


def _other_sums(xp: RunningError, logits: Any, before: Any) -> list[Any]:
    """Return the mass before each token by subtraction: from the mass up to it, and from 1."""
    q, rank = softmax(xp, logits), ranks(logits)
    rising = rank.shape[-1] - 1 - rank
    following = xp.cumsum(xp.take_along(q, np.argsort(rising, axis=-1), axis=-1))
    return [(before + q) - q, 1 - xp.take_along(following, rising, axis=-1)]


def draw_logits(trial: Trial, least_rank: int = 0, kinds: tuple[str, ...] = (), *, near: bool = False) -> torch.Tensor:
    """Draw scores of rank up to 4, with ties where the target says what it does with them, with some at −∞.

    Where only their order counts they may be near: neighbours in the dtype.
    """
    large = trial.rows((2, 40000), (1, 2000), least_rank=least_rank)
    lead = trial.draw(leading_shapes(3, 3)) if large is None else large[:-1]
    lead = lead if len(lead) >= least_rank else (2,) * least_rank
    untied = trial.claims.deviates("choice.ties")
    kinds = ("gaussian", "one-signed", "offset", "peaked", "spread") if untied else kinds
    kind = trial.draw(values(kinds) if kinds else values())
    z = kind.array(*lead, trial.draw(widths()) if large is None else large[-1])
    near = near and z.shape[-1] < 2 ** (trial.format.precision - 2)
    z = _neighbours(trial, kind.rng, z.shape) if near and trial.draw(st.integers(0, 2)) == 2 else z
    trial.assume(not untied or apart(trial.tensor(z)))
    if trial.draw(st.integers(0, 3)) == 3:
        hidden = kind.rng.random(z.shape) < 0.4
        np.put_along_axis(hidden, kind.rng.integers(0, z.shape[-1], (*lead, 1)), False, -1)
        z = np.where(hidden, -np.inf, z)
    return trial.tensor(z)


def _neighbours(trial: Trial, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draw consecutive numbers of the dtype, in any order: around 1, the smallest normal number, or −2^14.

    No subnormal numbers: a processor may take them for zero.
    """
    m, form = shape[-1], trial.format
    first = rng.integers(0, 2 ** (form.precision - 1) - m)
    steps = rng.permuted(np.tile(np.arange(m), (*shape[:-1], 1)), axis=-1)
    size = rng.choice([1.0, form.smallest_normal, -(2.0**14)])
    return np.asarray(size * (1 + (first + steps) * 2 * form.unit_roundoff))


def apart(z: torch.Tensor) -> bool:
    """Return whether the scores of every row are distinct."""
    return bool((z.sort(-1).values.diff() > 0).all())


def draw_p(trial: Trial) -> float:
    """Draw a threshold: none of the probability, all of it, hardly any, nearly all, or some."""
    p = trial.draw(choice(0.5, 0.9, 0.0, 1.0, 0.25, 0.75, 1e-30, 0.99, 1 - 2.0**-30, None))
    return float(trial.draw(st.floats(0.001, 0.999))) if p is None else p


def ordinary_scores(trial: Trial) -> torch.Tensor:
    """Draw Gaussian scores."""
    return trial.tensor(trial.draw(values(("gaussian",))).array(2, trial.draw(sizes(3))))


def changes_of_filter(key: str, less: Any, more: Any) -> Any:
    """Draw a call, and the same with its scores, or what they are filtered by, changed."""

    def changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
        z = np.array([0.5, 2.0, -1.0, 1.0]) + trial.draw(values(("integers",))).array(1)
        a: Arguments = {"logits": trial.tensor(z), key: less}
        return a, {"logits": {**a, "logits": trial.tensor(z[::-1])}, key: {**a, key: more}}

    return changes


def long_rows(trial: Trial, most: int = 5000) -> torch.Tensor:
    """Draw rows of any length, every third with its best entries at the end, which too narrow an index type misses."""
    if trial.claims.deviates("choice.ties"):  # numbers that differ in every dtype
        n = trial.draw(extent(65, 2048))
        grid = np.arange(128, 256) * 0.5 ** np.arange(2, 10)[:, None]
        return trial.tensor(np.random.default_rng(n).permutation(np.ravel([grid, -grid])[:n])[None])
    if trial.draw(choice(False, False, True)):
        n = trial.draw(extent(1000, most))
        return trial.tensor(np.minimum(np.arange(n) - (n - trial.draw(extent(1, 100))), 0.0)[None])
    shape = trial.rows((65, 5000), (1, 1000))
    assert shape is not None
    return trial.tensor(trial.draw(values(("gaussian", "ties", "offset", "duplicates"))).array(*shape))


def bad_scores(trial: Trial, good: Arguments) -> Iterator[InvalidCall]:
    """Yield scores that a choice refuses."""
    yield InvalidCall("no class", {**good, "logits": good["logits"][..., :0]}, ("logits", *({"k"} & set(good))))
