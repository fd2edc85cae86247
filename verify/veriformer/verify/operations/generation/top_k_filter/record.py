"""The top-k filter as a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import hypothesis.strategies as st

from veriformer.spec.generation.top_k_filter import top_k_filter
from veriformer.verify.judging.op_info import InvalidCall, OpInfo
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.generation.filters import (
    bad_scores,
    changes_of_filter,
    draw_logits,
    long_rows,
    one_row,
    ordinary_scores,
)
from veriformer.verify.strategies import extent


def _top_k(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [top_k_filter(xp, a["logits"], a["k"])]


def _draw_k(trial: Trial) -> Arguments:
    z = draw_logits(trial, near=True)
    return {"logits": z, "k": trial.draw(st.integers(1, z.shape[-1]))}


def _long_k(trial: Trial) -> Arguments:
    z = long_rows(trial)
    return {"logits": z, "k": trial.draw(extent(1, z.shape[-1]))}


def _bad_k(trial: Trial) -> Iterator[InvalidCall]:
    good: Arguments = {"logits": ordinary_scores(trial), "k": 2}
    yield from bad_scores(good)
    for k, what in ((0, "0"), (-1, "negative"), (True, "a bool"), (None, "missing"), (1.5, "no integer")):
        yield InvalidCall(f"a k that is {what}", {**good, "k": k}, ("k",))


TOP_K_FILTER = OpInfo(
    name="top_k_filter",
    sample=_draw_k,
    sample_basic=lambda trial: {"logits": ordinary_scores(trial), "k": 2},
    formulas=(_top_k,),
    invalid_calls=_bad_k,
    batch_slice=lambda trial: one_row(_draw_k(trial), trial),
    argument_perturbations=changes_of_filter("k", 2, 3),
    sample_large=_long_k,
    structural_dtypes=("fp32", "bf16"),
    use_exact_oracle=False,
)
