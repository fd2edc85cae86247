"""Inference of refused features: the fewest that explain which calls were refused."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veriformer.verify.contract.refusals import TOGETHER

LEAST_CALLS = 4
"""Minimum number of refused calls with a feature, none of them answered, before it is called refused."""

ERROR_RATE = 1e-3
"""Probability that a feature is called refused by chance, where refusals have nothing to do with it."""


@dataclass(frozen=True)
class Probed:
    """A call of the probe. features: their names; error: the message of its refusal, None where it was answered."""

    features: frozenset[str]
    error: str | None = None


def infer_refusals(calls: Sequence[Probed], candidates: Sequence[str]) -> dict[str, str]:
    """Return the message of a refusal by label of the feature, or of the two features, that it depends on.

    candidates: features that may be refused; of those that explain as much, the earlier one is named.
    """
    found: dict[str, str] = {}
    _explain(calls, candidates, found, pairs=False)
    _explain(calls, candidates, found, pairs=True)
    return found


def unexplained_refusals(calls: Sequence[Probed], found: Collection[str]) -> list[Probed]:
    """Return the refused calls that have nothing of what is known to be refused."""
    labels = [frozenset(label.split(TOGETHER)) for label in found]
    return [call for call in calls if call.error is not None and not any(names <= call.features for names in labels)]


def _explain(calls: Sequence[Probed], candidates: Sequence[str], found: dict[str, str], *, pairs: bool) -> None:
    """Add what explains most of the refusals left, again and again, until nothing does beyond chance."""
    answered = _table([call for call in calls if call.error is None], candidates)
    never = answered.T @ answered == 0  # on the diagonal single features, beside it two together
    alone = np.diag(never)
    possible = np.triu(never & ~alone & ~alone[:, None], 1) if pairs else np.diag(alone)
    while True:
        left = unexplained_refusals(calls, found)
        table = _table(left, candidates)
        counts = np.where(possible, table.T @ table, 0)
        if not counts.size or counts.max() < LEAST_CALLS:
            return
        first, second = (int(place) for place in np.unravel_index(int(counts.argmax()), counts.shape))
        count = int(counts[first, second])
        if _by_chance(len(left) - count, len(answered), count, int(possible.sum())) > ERROR_RATE:
            return
        names = dict.fromkeys((candidates[first], candidates[second]))
        found[TOGETHER.join(names)] = next(str(call.error) for call in left if names.keys() <= call.features)


def _table(calls: Sequence[Probed], candidates: Sequence[str]) -> NDArray[np.int64]:
    """Return the incidence matrix [calls, features]."""
    rows = [[name in call.features for name in candidates] for call in calls]
    return np.array(rows, dtype=np.int64).reshape(len(calls), len(candidates))


def _by_chance(others: int, answered: int, count: int, options: int) -> float:
    """Bound from above the probability that some feature is refused so often by chance, at the rate of other calls."""
    rate = (others + 0.5) / (others + answered + 1)
    return float(options * rate**count)
