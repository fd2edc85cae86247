"""Beam search as a record, and every text there is: the oracle on small models."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.op_info import InvalidCall, OpInfo
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.scores.targets import ids
from veriformer.verify.scripts.script import TabularLM
from veriformer.verify.strategies import choice, seeds

Text = tuple[tuple[int, ...], tuple[float, ...]]
"""The ids of a text with its start, and the log-probability of each that was generated."""


_SIZES = ((3, 2), (2, 3), (3, 3), (2, 6), (4, 2), (2, 1), (3, 4), (2, 5), (4, 3), (5, 2), (3, 1), (1, 3))


_WEIGHTS = ((1, 2, 3, 4, 5), (1, 1, 2, 9, 30), (0, 1, 2, 9), (0, 0, 1, 3, 8), (1, 2), (1,))


def draw_search(trial: Trial, *, penalties: tuple[float, ...] = (0.0, 1.0, 0.5, 2.0, 1.5, -0.5)) -> Arguments:
    """Draw a small model, its start and its options, with a beam of width 1 to 4."""
    weights = trial.draw(choice(*_WEIGHTS, *_TRAPS))
    size, depth = _size(weights, *trial.draw(choice(*_SIZES)))
    rng = np.random.default_rng(trial.draw(seeds()))
    start = [int(i) for i in rng.integers(0, size, rng.choice([1, 1, 2, 3]))]
    eos = int(rng.integers(0, size))
    if isinstance(weights, str):
        table = _TRAPS[weights](rng, tuple(start), eos, size, depth, trial.dtype)
    else:
        table = _model(rng, weights, tuple(start), size, depth, trial.dtype)
    telling = _PENALTIES.get(weights, penalties)
    penalty = trial.draw(choice(*([p for p in penalties if p in telling] or penalties)))
    return {
        "step": table,
        "start": ids(np.array(start)),
        "beam_width": trial.draw(choice(2, 1, 3, 4)),
        "max_length": len(start) + depth,
        "eos": eos,
        "length_penalty": penalty,
    }


def _model(
    rng: np.random.Generator,
    weights: tuple[int, ...],
    start: tuple[int, ...],
    size: int,
    depth: int,
    dtype: torch.dtype,
) -> TabularLM:
    rows: dict[tuple[int, ...], tuple[float, ...]] = {}
    texts = [start]
    for _ in range(depth):
        rows |= {text: _row(rng, weights, size, dtype) for text in texts}
        texts = [(*text, k) for text in texts for k in range(size)]
    return TabularLM(rows, _row(rng, (1,), size, dtype), dtype)


def _patient(
    rng: np.random.Generator, start: tuple[int, ...], eos: int, size: int, depth: int, dtype: torch.dtype
) -> TabularLM:
    """Return the end twice as likely as a text that then goes on for certain, which is worth more only by its
    length.
    """
    sure = np.zeros(size)
    sure[rng.choice([i for i in range(size) if i != eos])] = 1.0
    first = sure + 2.0 * (np.arange(size) == eos)
    texts = [(*start, *[int(sure.argmax())] * n) for n in range(depth)]
    rows = {text: _logs(sure if n else first, dtype) for n, text in enumerate(texts)}
    return TabularLM(rows, _logs(np.ones(size), dtype), dtype)


def _hasty(
    rng: np.random.Generator, start: tuple[int, ...], eos: int, size: int, depth: int, dtype: torch.dtype
) -> TabularLM:
    """Return a text that is better by ending soon: under a negative penalty it loses by its length, though not yet by
    one.
    """
    other = int(rng.choice([i for i in range(size) if i != eos]))
    rows = {start: _ending(eos, 3.0, other, 4.0, size, dtype), (*start, other): _logs(np.eye(size)[eos], dtype)}
    return TabularLM(rows, _logs(np.ones(size), dtype), dtype)


def _deep(
    rng: np.random.Generator, start: tuple[int, ...], eos: int, size: int, depth: int, dtype: torch.dtype
) -> TabularLM:
    """Make a model whose texts may end at every length: the longest has the best mean, and the worst sum."""
    other = int(rng.choice([i for i in range(size) if i != eos]))
    texts = [(*start, *[other] * n) for n in range(depth - 1)]
    rows = {text: _ending(eos, 4.0, other, 5.0, size, dtype) for text in texts}
    return TabularLM(rows | {texts[-1]: _logs(np.eye(size)[eos], dtype)}, _logs(np.ones(size), dtype), dtype)


def _ending(eos: int, end: float, other: int, on: float, size: int, dtype: torch.dtype) -> tuple[float, ...]:
    """Return the end or one other token, with these weights."""
    return _logs(end * np.eye(size)[eos] + on * np.eye(size)[other], dtype)


def _late(
    rng: np.random.Generator, start: tuple[int, ...], eos: int, size: int, depth: int, dtype: torch.dtype
) -> TabularLM:
    """Return the best text begins with the least likely of many continuations: it goes on for certain, the others do
    not.
    """
    rare = int(rng.choice([i for i in range(size) if i != eos]))
    first = np.where(np.arange(size) == eos, 0.0, 2.0)
    first[rare] = 1.0
    sure, vague = np.eye(size)[rng.integers(size)], np.where(np.arange(size) < 3, 1.0, 0.0)
    return TabularLM({start: _logs(first, dtype), (*start, rare): _logs(sure, dtype)}, _logs(vague, dtype), dtype)


_TRAPS: Mapping[str, Callable[..., TabularLM]] = {"patient": _patient, "late": _late, "hasty": _hasty, "deep": _deep}
"""Models in which a search that stops, prunes or compares too early misses the best text."""


_PENALTIES: Mapping[Any, tuple[float, ...]] = {"hasty": (-0.5,), "deep": (1.0, 1.5, 2.0)}
"""The penalties under which it does, where few do."""


def _size(weights: object, size: int, depth: int) -> tuple[int, int]:
    """Return the tokens that a model needs, and how many of them it generates."""
    if weights in ("late", "deep"):
        return (70, 2) if weights == "late" else (2, 7)
    return (max(2, size), max(3, depth)) if isinstance(weights, str) else (size, depth)


def _row(rng: np.random.Generator, weights: tuple[int, ...], size: int, dtype: torch.dtype) -> tuple[float, ...]:
    """Draw log-probabilities in proportion to small integers: ties are exact, and everything else is far apart."""
    w = rng.choice(weights, size).astype(np.float64)
    w[rng.integers(0, size)] += not w.any()
    return _logs(w, dtype)


def _logs(w: np.ndarray[Any, np.dtype[np.float64]], dtype: torch.dtype) -> tuple[float, ...]:
    with np.errstate(divide="ignore"):
        log_p = torch.as_tensor(np.log(w / w.sum())).to(dtype)
    return tuple(float(x) for x in log_p)


def every_text(a: Arguments) -> list[Text]:
    """Return all possible results of a search: texts with eos at the end alone, or as long as allowed."""
    return list(_texts(a, tuple(a["start"].tolist()), ()))


def _texts(a: Arguments, text: tuple[int, ...], log_p: tuple[float, ...]) -> Iterator[Text]:
    if len(text) == a["max_length"] or (log_p and text[-1] == a["eos"]):
        yield text, log_p
        return
    for k, x in enumerate(a["step"].row(text)):
        if x > -math.inf:
            yield from _texts(a, (*text, k), (*log_p, x))


def exhaustive_width(a: Arguments) -> int:
    """Return the smallest beam that loses no text: the largest number of continuations in any round."""
    alive, widest = [tuple(a["start"].tolist())], 1
    while alive and len(alive[0]) < a["max_length"]:
        step = a["step"]
        grown = [(*text, k) for text in alive for k, x in enumerate(step.row(text)) if x > -math.inf]
        widest, alive = max(widest, len(grown)), [text for text in grown if text[-1] != a["eos"]]
    return widest


def scores(xp: Any, texts: list[Text], penalty: float) -> Any:
    """Return the sum of log-probabilities over length to the penalty, of each text."""
    depth = max(len(log_p) for _, log_p in texts)
    padded = np.array([[*log_p, *[0.0] * (depth - len(log_p))] for _, log_p in texts])
    total, n = xp.sum(xp.asarray(padded), axis=-1), np.array([float(len(log_p)) for _, log_p in texts])
    if penalty in (0.0, 1.0):
        return total / xp.asarray(n) if penalty else total
    return total / xp.exp(xp.log(xp.asarray(n)) * penalty)


def _ordinary(trial: Trial) -> Arguments:
    return draw_search(trial, penalties=(0.0,))


def _refusals(trial: Trial) -> Iterator[InvalidCall]:
    good = _ordinary(trial)
    yield InvalidCall("no step", {**good, "step": None}, ("step",))
    yield InvalidCall("no start", {**good, "start": None}, ("start",))
    yield InvalidCall("a start of rank 2", {**good, "start": good["start"][None]}, ("start",))
    yield InvalidCall("a negative length", {**good, "max_length": -1}, ("max_length",))
    for width, what in ((0, "of no width"), (-2, "of negative width"), (True, "that is a bool"), (None, "missing")):
        yield InvalidCall(f"a beam {what}", {**good, "beam_width": width}, ("beam_width",))
    yield InvalidCall("a bool for a length", {**good, "max_length": True}, ("max_length",))
    yield InvalidCall("a penalty that is NaN", {**good, "length_penalty": math.nan}, ("length_penalty",))
    yield InvalidCall("a bool for a penalty", {**good, "length_penalty": True}, ("length_penalty",))


BEAM_SEARCH = OpInfo(
    name="beam_search", sample=draw_search, sample_basic=_ordinary, invalid_calls=_refusals, dtypes=("fp64", "fp32")
)
