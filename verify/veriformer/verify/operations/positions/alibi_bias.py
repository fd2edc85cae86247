"""ALiBi's bias: its record and its laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from veriformer.spec.positions.alibi import distances
from veriformer.verify.judging.judge import Floats, Reference
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import call_within_bound
from veriformer.verify.laws.equality import equal, slice_result
from veriformer.verify.laws.family import check
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.positions.encodings import ALGEBRA, SLACK, slopes_by_ratio
from veriformer.verify.strategies import choice, sizes


def _bias_by_ratio(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    slopes = slopes_by_ratio(xp, a)[0]
    return [xp.reshape(slopes, (*slopes.shape, 1, 1)) * -distances(int(a["n_q"]), int(a["n_k"]))]


def _entries(s: Mapping[str, int]) -> float:
    return s["num_heads"] * s["n_q"] * s["n_k"]


def draw_bias(trial: Trial) -> Arguments:
    """Draw lengths from 0, either the longer."""
    large = trial.sizes({"num_heads": (1, 130), "n_q": (1, 2000), "n_k": (1, 8000)}, _entries)
    if large is not None:
        return large
    return {
        "num_heads": trial.draw(choice(3, 12, 1, 2, 20, 4, 5, 6, 8)),
        "n_q": trial.draw(choice(2, 3, 1, 4, 5, 0)),
        "n_k": trial.draw(choice(4, 3, 2, 5, 1, 6, 0)),
    }


ALIBI_BIAS = operation(
    "alibi_bias",
    sample=draw_bias,
    sample_basic=lambda trial: {"num_heads": 4, "n_q": trial.draw(sizes(2)), "n_k": trial.draw(sizes(2))},
    also=(_bias_by_ratio,),
    sample_large=draw_bias,
    structural_dtypes=("fp32", "bf16"),
)


def _last_query(trial: Trial) -> None:
    heads, n_q, n_k = trial.draw(choice(4, 3, 6)), trial.draw(sizes(2, 5)), trial.draw(sizes(1, 6))
    several, of_several = call_within_bound(trial, ALIBI_BIAS, {"num_heads": heads, "n_q": n_q, "n_k": n_k})
    fewer = trial.draw(sizes(1, n_q - 1))
    alone, of_alone = call_within_bound(trial, ALIBI_BIAS, {"num_heads": heads, "n_q": fewer, "n_k": n_k})
    index = (slice(None), slice(n_q - fewer, None))
    part = Reference(of_several.exact[index], of_several.bound[index])
    equal(trial, slice_result(several, index), alone, part, of_alone, "the bias of the last queries")


def second_steps(bias: torch.Tensor) -> torch.Tensor:
    """Return second differences along the keys, in float64."""
    return bias.double().diff(dim=-1).diff(dim=-1)


def _distance(trial: Trial) -> None:
    """Check straight lines that meet in zero at the query's own key."""
    n_q, n_k = trial.draw(sizes(1, 5)), trial.draw(sizes(3, 7))
    bias, reference = call_within_bound(
        trial, ALIBI_BIAS, {"num_heads": trial.draw(choice(4, 3, 6)), "n_q": n_q, "n_k": n_k}
    )
    own = np.arange(n_q) + n_k - n_q
    exact: Floats = np.diff(reference.exact, n=2, axis=-1)
    bound = reference.bound[..., 2:] + 2 * reference.bound[..., 1:-1] + reference.bound[..., :-2]
    bound = bound * (1 + SLACK) + 2.0**-48 * np.abs(reference.exact).max()
    middle = own[:, None] == np.arange(1, n_k - 1)
    law = Reference(np.where(middle, exact, 0.0), bound, scale=1.0, constant=True)
    trial.assert_within_bound(trial.observe(second_steps, bias), law, "the bend of the bias")
    e = bias.expression
    for i, j in enumerate(own):
        if j >= 0:
            zero = not bool(bias.value[:, i, j].any())
            trial.assert_true(zero, "a key at no distance has a bias", f"not bool({e}[:, {i}, {j}].any())")


CHECKS = (
    check("alibi_bias.last_query", _last_query, dtypes=ALGEBRA),
    check("alibi_bias.distance", _distance, dtypes=ALGEBRA),
)
