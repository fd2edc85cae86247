"""Top-k, top-p and greedy choice as records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.spec.arithmetic import RunningError
from veriformer.spec.generation.choices import exact_values, ranks
from veriformer.spec.generation.greedy import greedy
from veriformer.spec.generation.top_k_filter import top_k_filter
from veriformer.spec.generation.top_p_filter import mass_before, top_p_filter
from veriformer.spec.scores.softmax import softmax
from veriformer.verify.operation import Index, Operation, Refusal
from veriformer.verify.strategies import choice, leading_shapes, sizes, values, widths
from veriformer.verify.trial import Arguments, Trial


def _top_k(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [top_k_filter(xp, a["logits"], a["k"])]


def _top_p(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """What is kept; nothing is said of a token before which the mass meets p within rounding."""
    filtered = top_p_filter(xp, a["logits"], a["p"])
    if isinstance(xp, RunningError) and a["p"] < 1:
        filtered.error = np.where(undecided(xp, a["logits"], a["p"]), np.inf, filtered.error)
    return [filtered]


def undecided(xp: RunningError, logits: Any, p: float) -> np.ndarray:
    """Tokens before which the mass is nearer to p than rounding tells apart, in whichever way it is summed."""
    given, before = xp.asarray(p), mass_before(xp, logits)
    gap = np.abs((exact_values(before) - exact_values(given)).astype(np.float64))
    slack = np.maximum.reduce([before.error, *(form.error for form in _other_sums(xp, logits, before))])
    return np.asarray((gap <= slack + given.error + (1 - given).error) & (ranks(logits) > 0))


def _other_sums(xp: RunningError, logits: Any, before: Any) -> list[Any]:
    """The mass before each token as the mass up to it less its own, and as 1 less that of itself and what follows."""
    q, rank = softmax(xp, logits), ranks(logits)
    later = rank[..., None, :] >= rank[..., :, None]
    rows = xp.broadcast_to(xp.reshape(q, (*q.shape[:-1], 1, q.shape[-1])), later.shape)
    return [(before + q) - q, 1 - xp.sum(xp.where(later, rows, 0), axis=-1)]


def _greedy(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [np.asarray(greedy(a["logits"]))]


def draw_logits(trial: Trial, least_rank: int = 0, kinds: tuple[str, ...] = (), *, near: bool = False) -> torch.Tensor:
    """Scores of rank up to 4, with ties where the target says what it does with them, with some at −∞.

    Where only their order counts they may be near: neighbours in the dtype.
    """
    lead = trial.draw(leading_shapes(3, 3))
    lead = lead if len(lead) >= least_rank else (2,) * least_rank
    untied = trial.claims.deviates("choice.ties")
    kinds = ("gaussian", "one-signed", "offset", "peaked", "spread") if untied else kinds
    kind = trial.draw(values(kinds) if kinds else values())
    z = kind.array(*lead, trial.draw(widths()))
    z = _neighbours(trial, kind.rng, z.shape) if near and trial.draw(st.integers(0, 2)) == 2 else z
    trial.assume(not untied or apart(trial.tensor(z)))
    if trial.draw(st.integers(0, 3)) == 3:
        hidden = kind.rng.random(z.shape) < 0.4
        np.put_along_axis(hidden, kind.rng.integers(0, z.shape[-1], (*lead, 1)), False, -1)
        z = np.where(hidden, -np.inf, z)
    return trial.tensor(z)


def _neighbours(trial: Trial, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers that follow one another in the dtype, in any order: ordinary ones, the smallest normal ones, or low ones.

    No subnormal numbers: a processor may take them for zero.
    """
    m, form = shape[-1], trial.format
    first = rng.integers(0, 2 ** (form.precision - 1) - m)
    steps = rng.permuted(np.tile(np.arange(m), (*shape[:-1], 1)), axis=-1)
    size = rng.choice([1.0, form.smallest_normal, -(2.0**14)])
    return np.asarray(size * (1 + (first + steps) * 2 * form.unit_roundoff))


def apart(z: torch.Tensor) -> bool:
    """Whether the scores of every row differ."""
    return bool((z.sort(-1).values.diff() > 0).all())


def _draw_k(trial: Trial) -> Arguments:
    z = draw_logits(trial, near=True)
    return {"logits": z, "k": trial.draw(st.integers(1, z.shape[-1]))}


def draw_p(trial: Trial) -> float:
    """A threshold: none of the probability, all of it, hardly any, nearly all, or some."""
    p = trial.draw(choice(0.5, 0.9, 0.0, 1.0, 0.25, 0.75, 1e-30, 0.99, 1 - 2.0**-30, None))
    return float(trial.draw(st.floats(0.001, 0.999))) if p is None else p


def _draw_p(trial: Trial) -> Arguments:
    return {"logits": draw_logits(trial), "p": draw_p(trial)}


def _ordinary(trial: Trial) -> torch.Tensor:
    return trial.tensor(trial.draw(values(("gaussian",))).array(2, trial.draw(sizes(3))))


def _row(whole: Arguments, trial: Trial, extra: int = 0) -> tuple[Arguments, Arguments, dict[str, Index]]:
    """One row of several."""
    z = whole["logits"] if whole["logits"].ndim > 1 else whole["logits"][None].repeat(2, 1)
    i = trial.draw(st.integers(0, z.shape[0] - 1))
    index = (slice(i, i + 1),)
    return {**whole, "logits": z}, {**whole, "logits": z[index]}, {"result": index}


def _changes_of_filter(key: str, less: Any, more: Any) -> Any:
    def changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
        z = np.array([0.5, 2.0, -1.0, 1.0]) + trial.draw(values(("integers",))).array(1)
        a: Arguments = {"logits": trial.tensor(z), key: less}
        return a, {"logits": {**a, "logits": trial.tensor(z[::-1])}, key: {**a, key: more}}

    return changes


def _greedy_changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    z = np.array([0.5, 2.0, -1.0]) + trial.draw(values(("integers",))).array(1)
    return {"logits": trial.tensor(z)}, {"logits": {"logits": trial.tensor(np.roll(z, 1))}}


_ROWS = ((2, 1025), (70, 513), (2, 2048), (1, 4999))


def _long(trial: Trial, *more: tuple[int, int]) -> torch.Tensor:
    rows, n = trial.draw(choice(*_ROWS, *more))
    if trial.claims.deviates("choice.ties"):  # numbers that differ in every dtype
        grid = np.arange(128, 256) * 0.5 ** np.arange(2, 10)[:, None]
        return trial.tensor(np.random.default_rng(n).permutation(np.ravel([grid, -grid])[:n])[None])
    if n > 2**16:  # the best are the last few, which 16 bits do not count
        return trial.tensor(np.minimum(np.arange(n) - 2.0**16 - 77, 0.0)[None])
    return trial.tensor(trial.draw(values(("gaussian", "ties", "offset", "duplicates"))).array(rows, n))


def _bad_scores(good: Arguments) -> Iterator[Refusal]:
    yield Refusal("no scores", {**good, "logits": None}, ("logits",))
    yield Refusal("no class", {**good, "logits": good["logits"][..., :0]}, ("logits", *({"k"} & set(good))))


def _bad_k(trial: Trial) -> Iterator[Refusal]:
    good: Arguments = {"logits": _ordinary(trial), "k": 2}
    yield from _bad_scores(good)
    for k, what in ((0, "0"), (-1, "negative"), (True, "a bool"), (None, "missing"), (1.5, "no integer")):
        yield Refusal(f"a k that is {what}", {**good, "k": k}, ("k",))


def _bad_p(trial: Trial) -> Iterator[Refusal]:
    good: Arguments = {"logits": _ordinary(trial), "p": 0.9}
    yield from _bad_scores(good)
    for p, what in ((-0.1, "below 0"), (1.1, "above 1"), (math.nan, "NaN"), (True, "a bool"), (None, "missing")):
        yield Refusal(f"a p that is {what}", {**good, "p": p}, ("p",))


TOP_K_FILTER = Operation(
    name="top_k_filter",
    draw=_draw_k,
    ordinary=lambda trial: {"logits": _ordinary(trial), "k": 2},
    formulas=(_top_k,),
    refusals=_bad_k,
    part=lambda trial: _row(_draw_k(trial), trial),
    changes=_changes_of_filter("k", 2, 3),
    long=lambda trial: {"logits": _long(trial), "k": trial.draw(choice(50, 1, 512, 513))},
    forms=("fp32", "bf16"),
    sharp=False,
)

TOP_P_FILTER = Operation(
    name="top_p_filter",
    draw=_draw_p,
    ordinary=lambda trial: {"logits": _ordinary(trial), "p": 0.75},
    formulas=(_top_p,),
    refusals=_bad_p,
    part=lambda trial: _row(_draw_p(trial), trial),
    changes=_changes_of_filter("p", 0.25, 0.999),
    forms=("fp32", "bf16"),
    sharp=False,
)

GREEDY = Operation(
    name="greedy",
    draw=lambda trial: {"logits": draw_logits(trial, near=True)},
    ordinary=lambda trial: {"logits": _ordinary(trial)},
    formulas=(_greedy,),
    refusals=lambda trial: _bad_scores({"logits": _ordinary(trial)}),
    part=lambda trial: _row({"logits": draw_logits(trial)}, trial),
    changes=_greedy_changes,
    long=lambda trial: {"logits": _long(trial, (1, 70001))},  # a choice of k may be quadratic, and right
    result_dtype=lambda trial, arguments, part: torch.int64,
    forms=("fp32", "bf16"),
    sharp=False,
)
