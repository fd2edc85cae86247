"""Attention over more keys, queries or heads than a tile holds: every tile must be right."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.contract.dtypes import HALVES
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.equality import exactly
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import judge_with_gradients
from veriformer.verify.operations.attention.attention.draws import (
    Shape,
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
from veriformer.verify.strategies import choice, extent, sizes, values


def _judge(trial: Trial, arguments: Arguments) -> None:
    judge_with_gradients(trial, ATTENTION, arguments)


def _draw_sizes(trial: Trial, times: float = 4.0, **ranges: tuple[int, int]) -> Shape:
    """Draw sizes together, large ones among them, within these ranges."""
    trial.only_large(times)
    return draw_shape(trial, ranges)


def _long(trial: Trial) -> None:
    """Check lengths, widths, heads and batch together; a quarter of the calls is plain, a quarter only causal."""
    shape = _draw_sizes(trial, 16.0, d_k=(16, 256), n_k=(16, 1200))
    tensors = draw_tensors(trial, shape, ("gaussian", "peaked", "offset", "duplicates"))
    peaked = trial.draw(choice(1.0, 4.0))
    which = trial.draw(choice("plain", "causal", "any", "any"))
    options = draw_options(trial, shape, ("gaussian", "sparse")) if which == "any" else {}
    if which == "causal" and every_row_sees(trial, shape, {"is_causal": True}):
        options = {"is_causal": True}
    _judge(trial, {**tensors, "q": peaked * tensors["q"], **options})


def _partial_tiles(trial: Trial) -> None:
    """Check calls without masks: every tile is needed, and the last in a row of tiles is smaller than the next one's
    first.
    """
    lengths = {"n_q": (65, 600), "n_k": (65, 600)}
    shape = _draw_sizes(trial, 8.0, **lengths, batch=(1, 1), groups=(1, 1), repeats=(1, 2), d_k=(2, 16), d_v=(1, 16))
    _judge(trial, draw_tensors(trial, shape, ("gaussian", "peaked", "offset")))


def _long_windows(trial: Trial) -> None:
    """Check narrow windows and padding on the left: whole tiles of hidden keys precede the first visible one."""
    b, h, groups, n, _, d_k, d_v = _draw_sizes(
        trial, 8.0, n_q=(65, 300), n_k=(2, 2), batch=(2, 2), groups=(1, 2), repeats=(1, 2), d_k=(2, 32), d_v=(1, 32)
    )
    n_k = n + trial.draw(choice(0, 0, 1)) * trial.draw(extent(1, 100))
    shape = (b, h, groups, trial.fitted("n", n), trial.fitted("n", n_k), d_k, d_v)
    tensors = draw_tensors(trial, shape, ("gaussian", "one-signed", "offset"))
    if trial.dtype is not torch.float16:  # which leaves such scores in doubt
        tensors["q"], tensors["k"] = _lower_scores(trial, tensors["q"], tensors["k"])
    if trial.draw(choice(True, True, False)):
        options: dict[str, Any] = {"is_causal": True, "window": trial.draw(extent(1, 100))}
    else:
        hidden = torch.tensor([trial.draw(extent(1, n - 1)) for _ in range(2)])[:, None, None, None]
        options = {"mask": torch.arange(shape[4]) >= hidden}
    trial.assume(every_row_sees(trial, shape, options))
    _judge(trial, {**tensors, **options})


_OF_KEYS = ((True, True), (False, True), (True, False, True), (True, False, False, True), (True, True, True, True))
"""Axes of a mask or bias that differs from key to key."""


def _key_tiles(trial: Trial) -> None:
    """Check a few queries over several tiles of keys, with a mask and a bias per key, or one outstanding key."""
    shape = _draw_sizes(trial, 1.0, n_q=(1, 4), n_k=(33, 1200), batch=(1, 2), groups=(1, 2), repeats=(2, 2))
    n_k = shape[4]
    tensors = draw_tensors(trial, shape, ("gaussian", "one-signed", "duplicates"))
    if trial.draw(choice(False, True)):
        outstanding = (0, trial.draw(sizes(0, 15)), n_k - 1, trial.draw(sizes(0, n_k - 1)))
        _judge(trial, _with_one_above(trial, tensors, trial.draw(st.sampled_from(outstanding))))
        return
    mask = draw_mask(trial, shape, {}, trial.draw(choice(None, *_OF_KEYS)))
    bias = draw_bias(trial, shape, mask, trial.draw(choice(*_OF_KEYS)), ("gaussian", "one-signed", "spread"))
    _judge(trial, {**tensors, **mask, **bias})


def _with_one_above(trial: Trial, tensors: dict[str, torch.Tensor], place: int) -> dict[str, torch.Tensor]:
    """Replace q and k by ones of small scores, but for a key that every query scores 9 to 12 higher, where each e⁻⁹
    counts.

    Scores are otherwise small; one more feature, 1 in all queries, is 0 in all keys but this one.
    """
    q, k = (torch.nn.functional.pad(0.1 * tensors[name].clamp(-3, 3), (0, 1)) for name in "qk")
    q[..., -1] = 1.0
    k[:, :, place, -1] = trial.draw(sizes(9, 12)) * q.shape[-1] ** 0.5
    return {**tensors, "q": q, "k": k}


_LOUD = 2.0**12
"""A weight times this is above 2^-10 where a key is seen: 1 / 2100, less e⁴ for scores that differ."""


def keys_seen(x: torch.Tensor) -> torch.Tensor:
    """Return 1 where an entry is more than 2^-10, else 0."""
    return torch.where(x.isnan(), x.double(), (x.abs() > 2.0**-10).double())


def _far_positions(trial: Trial) -> None:
    """Check the last queries of a long text, each of which sees one key more than the one before, or another in a
    window.

    Beyond 256 bf16 cannot represent every position, nor fp16 beyond 2048; nor has a sum over so many keys a bound in
    halves. But a weight is 0 or it is not: a value that only one key has shows who sees this key, and in the gradient
    of the values a cotangent that only one query has shows what this query sees.
    """
    told_apart = 2**trial.format.precision if trial.dtype_name in HALVES else 256
    n_q, n_k = trial.draw(sizes(3, 5)), trial.draw(extent(told_apart + 5, 2 * told_apart + 8))
    options = {"is_causal": True, **trial.option("window", None, trial.draw(extent(1, 100)))}
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
    trial.assert_within_bound(
        trial.observe(keys_seen, outcome.result), exactly(seen[..., edges]), "which of some keys are seen"
    )
    by_key = np.zeros((1, 1, n_k, len(edges)))
    by_key[..., :n_q] = seen[0, 0].T
    trial.assert_within_bound(
        trial.observe(keys_seen, outcome.gradient("v")), exactly(by_key), "which queries see a key"
    )


def _decoding(trial: Trial) -> None:
    """Judge one or two queries over many keys: visible ones may be in few of the splits of the keys."""
    b, h, groups, n_q, n_k, d_k, d_v = _draw_sizes(trial, 1.0, n_q=(1, 2), n_k=(33, 2400))
    tensors = draw_tensors(trial, (b, h, groups, n_q, n_k, d_k, d_v), ("gaussian", "one-signed", "peaked"))
    tensors["q"], tensors["k"] = _lower_scores(trial, tensors["q"], tensors["k"])
    seen = trial.draw(choice("all", "few", "first", "window", "all", "all"))
    options: dict[str, Any] = {}
    if seen == "window":
        options = {"is_causal": True, "window": trial.draw(extent(1, n_k))}
    elif seen != "all":
        j = torch.arange(n_k)
        options = {"mask": (j < 10 if seen == "first" else j >= n_k - 10)[None]}
    trial.assume(every_row_sees(trial, (b, h, groups, n_q, n_k, d_k + 1, d_v), options))
    _judge(trial, {**tensors, **options})


def _lower_scores(trial: Trial, q: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Add a feature that lowers all scores by 0 or by 50 to 400: far below the 0 of an unwritten score."""
    lower = trial.draw(choice(0.0, 1.0, 1.0)) * trial.draw(extent(50, 400))
    q, k = (torch.nn.functional.pad(x, (0, 1), value=1.0) for x in (q, k))
    k[..., -1] = -lower * q.shape[-1] ** 0.5
    return q, k


def _many_heads(trial: Trial) -> None:
    """Check more heads, or batch elements, than 8 bits count, or on a GPU 16 bits, the limit of its grids."""
    least = 257 if trial.device == "cpu" else 65537
    many = trial.draw(extent(least, 2 * least))
    b, h = trial.draw(choice((1, many), (many, 1)))
    v = trial.tensor(trial.draw(values(("integers",))).rng.integers(1, 8, (b, h, 1, 1)))
    one = torch.ones_like(v)
    _judge(trial, {"q": one, "k": one, "v": v})


def _low_scores(trial: Trial) -> None:
    """Check equal scores of all visible keys, far below the number that masks.

    In halves such scores have no bound. With values of which each is one key's own, the result shows which are seen.
    """
    b, h, groups, n_q, n_k, _, _ = draw_shape(trial, diagonal=True)
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
    trial.assert_within_bound(trial.observe(keys_seen, result), exactly(seen), "which keys are seen")


CHECKS = (
    check("attention.long", _long, effort=1.5, dtypes=("fp64", "fp32")),
    check("attention.partial_tiles", _partial_tiles, effort=0.5, dtypes=("fp64", "fp32")),
    check("attention.key_tiles", _key_tiles, effort=0.5, dtypes=("fp64", "fp32")),
    check("attention.long_windows", _long_windows, effort=0.3, dtypes=("fp64", "fp32", "fp16")),
    check("attention.far_positions", _far_positions, effort=0.2),
    check("attention.decoding", _decoding, effort=0.8, dtypes=("fp64", "fp32")),
    check("attention.many_heads", _many_heads, effort=0.1, dtypes=("fp32", "fp16")),
    check("attention.low_scores", _low_scores),
)
