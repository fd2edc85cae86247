"""Attention over more keys, queries or heads than a tile holds: what is right in one tile must be right in each."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.equality import exactly
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import judge_with_gradients
from veriformer.verify.operations.attention.attention.draws import (
    draw_bias,
    draw_hiding,
    draw_mask,
    draw_options,
    draw_shape,
    draw_tensors,
    every_row_sees,
    sees,
)
from veriformer.verify.operations.attention.attention.record import ATTENTION
from veriformer.verify.strategies import choice, sizes, values


def _judge(trial: Trial, arguments: Arguments) -> None:
    judge_with_gradients(trial, ATTENTION, arguments)


LENGTHS = (65, 130, 128, 200, 257, 300)
"""Lengths beyond the tiles of kernels, at their edges and between."""


def _long(trial: Trial) -> None:
    """One thing at a time is large, and half of the calls are plain."""
    large = trial.draw(choice("lengths", "lengths", "widths", "heads"))
    n_q, n_k = (trial.draw(choice(*LENGTHS) if large == "lengths" else sizes(2, 7)) for _ in range(2))
    b, h, groups = trial.draw(choice((1, 2, 1), (2, 1, 1), (1, 2, 2), (1, 1, 1)))
    b, h, groups = trial.draw(choice((1, 20, 4), (1, 34, 34), (2, 17, 1))) if large == "heads" else (b, h, groups)
    d_k, d_v = trial.draw(choice((3, 2), (2, 3), (5, 1), (64, 3), (40, 2)))
    d_k, d_v = trial.draw(choice((80, 72), (130, 3), (256, 2), (3, 130))) if large == "widths" else (d_k, d_v)
    shape = (b, h, groups, n_q, n_k, d_k, d_v)
    tensors = draw_tensors(trial, shape, ("gaussian", "peaked", "offset", "duplicates"))
    peaked = trial.draw(choice(1.0, 4.0))
    options = draw_options(trial, shape, ("gaussian", "sparse")) if trial.draw(st.booleans()) else {}
    _judge(trial, {**tensors, "q": peaked * tensors["q"], **options})


def _partial_tiles(trial: Trial) -> None:
    """Nothing is hidden: every tile is needed, and the last in a row of tiles is smaller than the first of the next."""
    n_q, n_k = trial.draw(choice((300, 257), (257, 300), (321, 270)))
    shape = (1, 2, trial.draw(sizes(1, 2)), n_q, n_k, 3, 2)
    _judge(trial, draw_tensors(trial, shape, ("gaussian", "peaked", "offset")))


def _long_windows(trial: Trial) -> None:
    """Whole tiles of hidden keys before the first visible one: narrow windows and padding on the left."""
    n = trial.draw(choice(130, 200, 257))
    shape = (2, 2, trial.draw(sizes(1, 2)), n, n + trial.draw(choice(0, 70)), 3, 2)
    tensors = draw_tensors(trial, shape, ("gaussian", "one-signed", "offset"))
    if trial.dtype is not torch.float16:  # which leaves such scores in doubt
        tensors["q"], tensors["k"] = _lowered(trial, tensors["q"], tensors["k"])
    if trial.draw(choice(True, True, False)):
        options: dict[str, Any] = {"is_causal": True, "window": trial.draw(choice(5, 1, 64, 65))}
    else:
        hidden = torch.tensor([trial.draw(choice(66, 3, 129)) for _ in range(2)])[:, None, None, None]
        options = {"mask": torch.arange(shape[4]) >= hidden}
    trial.assume(every_row_sees(trial, shape, options))
    _judge(trial, {**tensors, **options})


_OF_KEYS = ((True, True), (False, True), (True, False, True), (True, False, False, True), (True, True, True, True))
"""Axes of a mask or bias that differs from key to key."""


def _key_tiles(trial: Trial) -> None:
    """A few queries over several tiles of keys: each key with a mask and a bias of its own, or one that stands out."""
    groups, n_k = trial.draw(sizes(1, 2)), trial.draw(choice(130, 65, 257))
    shape = (trial.draw(sizes(1, 2)), 2 * groups, groups, trial.draw(sizes(1, 4)), n_k, trial.draw(sizes(2, 4)), 2)
    tensors = draw_tensors(trial, shape, ("gaussian", "one-signed", "duplicates"))
    if trial.draw(choice(False, True)):
        outstanding = (0, trial.draw(sizes(0, 15)), n_k - 1, trial.draw(sizes(0, n_k - 1)))
        _judge(trial, _with_one_above(trial, tensors, trial.draw(st.sampled_from(outstanding))))
        return
    mask = draw_mask(trial, shape, {}, trial.draw(choice(None, *_OF_KEYS)))
    bias = draw_bias(trial, shape, mask, trial.draw(choice(*_OF_KEYS)), ("gaussian", "one-signed", "spread"))
    _judge(trial, {**tensors, **mask, **bias})


def _with_one_above(trial: Trial, tensors: dict[str, torch.Tensor], place: int) -> dict[str, torch.Tensor]:
    """The same with a key that every query scores 9 to 12 above the others, where e⁻⁹ of each of these still counts.

    Scores are otherwise small; one more feature, 1 in all queries, is 0 in all keys but this one.
    """
    q, k = (torch.nn.functional.pad(0.1 * tensors[name].clamp(-3, 3), (0, 1)) for name in "qk")
    q[..., -1] = 1.0
    k[:, :, place, -1] = trial.draw(sizes(9, 12)) * q.shape[-1] ** 0.5
    return {**tensors, "q": q, "k": k}


_LOUD = 2.0**12
"""A weight times this is above 2^-10 where a key is seen: 1 / 2100, less e⁴ for scores that differ."""


def heard(x: torch.Tensor) -> torch.Tensor:
    """1 where an entry is more than 2^-10, else 0."""
    return torch.where(x.isnan(), x.double(), (x.abs() > 2.0**-10).double())


def _far_positions(trial: Trial) -> None:
    """The last queries of a long text, each of which sees one key more than the one before, or one other in a window.

    Beyond 256 bf16 does not tell positions apart, nor fp16 beyond 2048; nor has a sum over so many keys a bound in
    halves. But a weight is 0 or it is not: a value that only one key has shows who sees this key, and in the gradient
    of the values a cotangent that only one query has shows what this query sees.
    """
    long = (2051, 2100) if trial.dtype is torch.float16 else (300, 261, 519)
    n_q, n_k = trial.draw(sizes(3, 5)), trial.draw(choice(*long))
    options = {"is_causal": True, **trial.option("window", None, 5, None, 64)}
    backs = sorted({0, options.get("window", 0)})
    edges = [n_k - n_q - 1 - back + i for back in backs for i in range(n_q + 1)]
    shape = (1, trial.draw(sizes(1, 2)), 1, n_q, n_k, 2, len(edges))
    trial.assume(every_row_sees(trial, shape, options))
    seen = sees(trial, shape, options)
    q, k = (draw_tensors(trial, shape, ("gaussian", "one-signed"))[name] for name in "qk")
    v = trial.tensor(_LOUD * (np.arange(n_k)[:, None] == edges))
    arguments = {"q": 0.1 * q, "k": k, "v": v[None, None], **options}
    cotangent = trial.tensor(np.broadcast_to(_LOUD * np.eye(n_q, len(edges)), (*seen.shape[:3], len(edges))))
    outcome = trial.call(arguments, wrt=("v",), cotangent=cotangent)
    trial.judge(trial.observe(heard, outcome.result), exactly(seen[..., edges]), "which of some keys are seen")
    by_key = np.zeros((1, 1, n_k, len(edges)))
    by_key[..., :n_q] = seen[0, 0].T
    trial.judge(trial.observe(heard, outcome.gradient("v")), exactly(by_key), "which queries see a key")


_CROWDS = (
    ((2, 1, 1), 512),
    ((1, 4, 2), 1030),
    ((1, 17, 1), 300),
    ((3, 4, 2), 300),
    ((1, 2, 2), 2050),
    ((40, 1, 1), 65),
    ((1, 40, 2), 64),
    ((2, 4, 2), 1024),
)
"""Batch, query heads and key heads, and how many keys, of which a text that goes on has one large."""


def _decoding(trial: Trial) -> None:
    """One or two queries over many keys: what they see may be in few of the parts into which the keys are split."""
    (b, h, groups), n_k = trial.draw(choice(*_CROWDS))
    n_q = trial.draw(choice(1, 2))
    tensors = draw_tensors(trial, (b, h, groups, n_q, n_k, 3, 2), ("gaussian", "one-signed", "peaked"))
    tensors["q"], tensors["k"] = _lowered(trial, tensors["q"], tensors["k"])
    seen = trial.draw(choice("all", "few", "first", "window"))
    options: dict[str, Any] = {}
    if seen == "window":
        options = {"is_causal": True, **trial.option("window", 5, 70)}
    elif seen != "all":
        j = torch.arange(n_k)
        options = {"mask": (j < 10 if seen == "first" else j >= n_k - 10)[None]}
    trial.assume(every_row_sees(trial, (b, h, groups, n_q, n_k, 4, 2), options))
    _judge(trial, {**tensors, **options})


def _lowered(trial: Trial, q: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """With one more feature, which takes nothing from all scores, or 200: far below the 0 of what is left out."""
    lower = trial.draw(choice(0.0, 200.0, 200.0))
    q, k = (torch.nn.functional.pad(x, (0, 1), value=1.0) for x in (q, k))
    k[..., -1] = -lower * q.shape[-1] ** 0.5
    return q, k


def _many_heads(trial: Trial) -> None:
    """More heads, or elements of the batch, than a byte can count, or 16 bits on a GPU, whose grids end there."""
    many = 300 if trial.device == "cpu" else 65537
    b, h = trial.draw(choice((1, many), (many, 1)))
    v = trial.tensor(trial.draw(values(("integers",))).rng.integers(1, 8, (b, h, 1, 1)))
    one = torch.ones_like(v)
    _judge(trial, {"q": one, "k": one, "v": v})


def _low_scores(trial: Trial) -> None:
    """Every visible key scores the same, far below anything that is written over the hidden ones.

    In halves such scores have no bound. With values of which each is one key's own, the result shows who is heard.
    """
    b, h, groups, n_q, n_k, _, _ = draw_shape(trial)
    n_k = max(n_k, 2)
    shape = (b, h, groups, n_q, n_k, 4, n_k)
    rng = trial.draw(values()).rng
    hiding = draw_hiding(trial, shape, rng)
    seen = np.broadcast_to(sees(trial, shape, hiding), (b, h, n_q, n_k))
    by_any = np.asarray(seen.reshape(b, groups, h // groups, n_q, n_k).any((2, 3)))
    direction = rng.choice([-1.0, 1.0], 4)
    q = trial.tensor(np.broadcast_to(200.0 * direction, (b, h, n_q, 4)))
    k = trial.tensor(-150.0 * direction * by_any[..., None])
    v = trial.tensor(np.broadcast_to(np.eye(n_k), (b, groups, n_k, n_k)))
    result = trial.call({"q": q, "k": k, "v": v, **hiding, **trial.option("scale", 1.0, None)}).result
    trial.judge(trial.observe(heard, result), exactly(seen), "which keys are heard")


CHECKS = (
    check("attention.long", _long, effort=0.4, dtypes=("fp64", "fp32")),
    check("attention.partial_tiles", _partial_tiles, effort=0.1, dtypes=("fp64", "fp32")),
    check("attention.key_tiles", _key_tiles, effort=0.5, dtypes=("fp64", "fp32")),
    check("attention.long_windows", _long_windows, effort=0.3, dtypes=("fp64", "fp32", "fp16")),
    check("attention.far_positions", _far_positions, effort=0.2),
    check("attention.decoding", _decoding, effort=0.8, dtypes=("fp64", "fp32")),
    check("attention.many_heads", _many_heads, effort=0.1, dtypes=("fp32", "fp16")),
    check("attention.low_scores", _low_scores),
)
