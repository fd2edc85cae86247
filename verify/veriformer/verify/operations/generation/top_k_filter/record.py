"""The top-k filter as a record."""

from __future__ import annotations

import hypothesis.strategies as st

from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.generation.filters import (
    bad_scores,
    changes_of_filter,
    draw_logits,
    long_rows,
    ordinary_scores,
)
from veriformer.verify.strategies import extent


def _draw_k(trial: Trial) -> Arguments:
    z = draw_logits(trial, near=True)
    return {"logits": z, "k": trial.draw(st.integers(1, z.shape[-1]))}


def _long_k(trial: Trial) -> Arguments:
    z = long_rows(trial)
    return {"logits": z, "k": trial.draw(extent(1, z.shape[-1]))}


TOP_K_FILTER = operation(
    "top_k_filter",
    sample=_draw_k,
    sample_basic=lambda trial: {"logits": ordinary_scores(trial), "k": 2},
    refuses=bad_scores,
    argument_perturbations=changes_of_filter("k", 2, 3),
    sample_large=_long_k,
    structural_dtypes=("fp32", "bf16"),
    use_exact_oracle=False,
)
