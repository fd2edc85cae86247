"""Laws of attention over a cache: results do not depend on chunks, nor on rows that were dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.arguments import array
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.laws.family import check
from veriformer.verify.laws.pairs import differ_only_where, exact, same
from veriformer.verify.operations.attention.cached_attention.record import CACHED_ATTENTION as CACHED
from veriformer.verify.operations.attention.kv_cache.draws import draw_call, draw_order, draw_part
from veriformer.verify.strategies import choice, sizes, values

_KINDS = ("gaussian", "integers", "one-signed", "duplicates", "peaked")


def _options(trial: Trial, length: int = 1) -> dict[str, Any]:
    given = {"window": draw_part(trial, length, 6)} if trial.draw(choice(False, True)) else {}
    return {**given, **trial.option("scale", None, 0.7, -0.5), **trial.option("softcap", None, None, 1.5)}


def _chunks(trial: Trial) -> None:
    """Check all tokens in one call against chunks of them, over an empty cache or not."""
    before = None if trial.draw(choice(True, False)) else ()
    a = draw_call(trial, chunks=before, new=trial.draw(choice(None, None, 2, 7, 5)), kinds=_KINDS)
    a |= _options(trial, a["max_length"])
    n = a["q_new"].shape[2]
    cuts: list[int] = []
    while sum(cuts) < n:
        left = n - sum(cuts)
        cuts.append(draw_part(trial, left, 3) if left > 6 else trial.draw(sizes(1, min(3, left))))
    same(trial, CACHED, a, {**a, "chunks": cuts}, "one call, and the same tokens in chunks")


def _reorder(trial: Trial) -> None:
    """Check element b over the past of element index[b]."""
    a = draw_call(trial, least=1, kinds=_KINDS)
    a |= _options(trial, a["max_length"])
    index = draw_order(trial, a["q_new"].shape[0])
    own = {**a, "past": [x[index] for x in a["past"]]}
    same(trial, CACHED, own, {**a, "order": index}, "a past of one's own, and one that was reordered", ("q_new",))


def _forgotten(trial: Trial) -> None:
    """Check NaN and infinities in rows that a reset, or the window, has dropped."""
    poison = trial.draw(choice(torch.nan, torch.inf, -torch.inf))
    if trial.draw(choice(True, False)):
        a = draw_call(trial, chunks=(3, 2)[: trial.draw(sizes(1, 2))], kinds=_KINDS) | _options(trial)
        a["past"] = [torch.full_like(x, poison) for x in a["past"]]
        a |= {"forget": True}
    else:
        window = trial.draw(sizes(1, 3))
        a = draw_call(trial, chunks=(trial.draw(sizes(1, 3)), window, 1), kinds=_KINDS) | {"window": window}
        a["past"] = [torch.full_like(x, poison) if i < 2 else x for i, x in enumerate(a["past"])]
    clean = {**a, "past": [torch.zeros_like(x) if not x.isfinite().all() else x for x in a["past"]]}
    agrees(trial, CACHED, clean, trial.call(a), CACHED.exact(trial, clean, use_exact_oracle=False))


def _overflow(trial: Trial) -> None:
    a = draw_call(trial, kinds=_KINDS) | _options(trial)
    room = a["max_length"] - sum(x.shape[2] for x in a["past"][::2])
    more = room + trial.draw(sizes(1, 2))
    b, heads, _, d = a["q_new"].shape
    rng = trial.draw(values()).rng
    shapes = (b, heads, more, d), *((b, a["k_new"].shape[1], more, d),) * 2
    tried = {**a, "excess": [trial.tensor(rng.standard_normal(shape)) for shape in shapes]}
    agrees(trial, CACHED, a, trial.call(tried), CACHED.exact(trial, a, use_exact_oracle=False))


def _causality(trial: Trial) -> None:
    a = draw_call(trial, new=trial.draw(sizes(2, 4)), kinds=("gaussian", "integers", "one-signed", "duplicates"))
    b, heads, n, d = a["q_new"].shape
    t = trial.draw(sizes(0, n - 1))
    other = dict(a)
    for name in ("k_new", "v_new"):
        other[name] = a[name].clone()
        other[name][:, :, t:] = 1.5 - 2.0 * a[name][:, :, t:]
    blind = np.broadcast_to((np.arange(n) < t)[:, None], (b, heads, n, d))
    differ_only_where(trial, CACHED, a, other, blind, "a result, after later keys and values have changed")


def _int8(trial: Trial) -> None:
    """Check values over two decades: a row's error must scale with the row, which a window of 1 shows undiluted."""
    a = draw_call(trial, kinds=("gaussian", "integers", "one-signed", "sparse")) | {"quantization": "int8"}
    a |= _options(trial) | trial.option("window", None, 1, 2, None)
    rng = trial.draw(values()).rng
    a["v_new"] = _of_many_sizes(trial, a["v_new"], rng)
    a["past"] = [_of_many_sizes(trial, x, rng) if i % 2 else x for i, x in enumerate(a["past"])]
    trial.assert_within_bound(trial.call(a).result, exact(trial, CACHED, a), "result")


def _of_many_sizes(trial: Trial, x: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Draw a factor for every row, and return the scaled rows."""
    return trial.tensor(array(x) * 10.0 ** rng.uniform(-1.0, 1.0, (*x.shape[:3], 1)))


CHECKS = (
    check("cached_attention.chunks", _chunks, effort=1.5, dtypes=("fp64", "fp32", "bf16")),
    check("cached_attention.reorder", _reorder, dtypes=("fp64", "fp32")),
    check("cached_attention.forgotten", _forgotten, dtypes=("fp32", "bf16")),
    check("cached_attention.overflow", _overflow, dtypes=("fp32",)),
    check("cached_attention.causality", _causality, dtypes=("fp64", "fp32")),
    check("cached_attention.int8", _int8, dtypes=("fp32", "bf16")),
)
