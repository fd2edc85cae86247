"""The top-p filter as a record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from veriformer.spec.arithmetic import RunningError
from veriformer.spec.generation.top_p_filter import top_p_filter
from veriformer.verify.judging.op_info import InvalidCall, OpInfo
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.generation.filters import (
    bad_scores,
    changes_of_filter,
    draw_logits,
    draw_p,
    one_row,
    ordinary_scores,
    undecided,
)


def _top_p(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Return the kept logits, with an infinite bound where the mass before a token meets p within rounding."""
    filtered = top_p_filter(xp, a["logits"], a["p"])
    if isinstance(xp, RunningError) and a["p"] < 1:
        filtered.error = np.where(undecided(xp, a["logits"], a["p"]), np.inf, filtered.error)
    return [filtered]


def _draw_p(trial: Trial) -> Arguments:
    return {"logits": draw_logits(trial), "p": draw_p(trial)}


def _bad_p(trial: Trial) -> Iterator[InvalidCall]:
    good: Arguments = {"logits": ordinary_scores(trial), "p": 0.9}
    yield from bad_scores(good)
    for p, what in ((-0.1, "below 0"), (1.1, "above 1"), (math.nan, "NaN"), (True, "a bool"), (None, "missing")):
        yield InvalidCall(f"a p that is {what}", {**good, "p": p}, ("p",))


TOP_P_FILTER = OpInfo(
    name="top_p_filter",
    sample=_draw_p,
    sample_basic=lambda trial: {"logits": ordinary_scores(trial), "p": 0.75},
    formulas=(_top_p,),
    invalid_calls=_bad_p,
    batch_slice=lambda trial: one_row(_draw_p(trial), trial),
    argument_perturbations=changes_of_filter("p", 0.25, 0.999),
    structural_dtypes=("fp32", "bf16"),
    use_exact_oracle=False,
)
