"""Laws of the top-p filter."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import torch

from veriformer.spec.generation.choices import ranks
from veriformer.spec.scores.softmax import softmax
from veriformer.verify.judging.arithmetic import over_float64
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.family import check, settles_ties
from veriformer.verify.operations.generation.filter_laws import (
    draw_rng,
    filtered,
    keeps_same_set,
    keeps_within,
    lifted_scores,
    permutation_law,
    tied_scores,
    untouched_law,
)
from veriformer.verify.operations.generation.filters import apart, draw_logits, draw_p, undecided
from veriformer.verify.scripts.script import literal
from veriformer.verify.strategies import choice, sizes


def _p(trial: Trial, z: torch.Tensor) -> dict[str, Any]:
    return {"p": draw_p(trial)}


def _nucleus(trial: Trial) -> None:
    m, rng = trial.draw(choice(3, 2, 4, 5, 6)), draw_rng(trial)
    z = trial.tensor(rng.choice([rng.standard_normal(m), np.log(rng.integers(1, 5, m)), rng.integers(0, 3, m)]))
    p = trial.draw(choice(0.5, 0.9, 0.25, 0.75, None))
    p = float(rng.uniform(0.05, 0.95)) if p is None else p
    trial.assume(not trial.claims.deviates("choice.ties") or apart(z))
    y = filtered(trial, {"logits": z, "p": p})
    kept = np.flatnonzero((y.value > -torch.inf).numpy()).tolist()
    right = _nuclei(trial, z, p)
    said = f"({y.expression} > -inf).nonzero()[:, 0].tolist() in {right!r}"
    trial.assert_true(kept in right, f"{kept} is kept, and not one of {right}", said)


def _nuclei(trial: Trial, z: torch.Tensor, p: float) -> list[list[int]]:
    """Return the sets that may be kept: of the fewest tokens that reach p by more, or by no less, than rounding
    explains.
    """
    xp = over_float64(trial.dtype_name)
    lifted = lifted_scores(trial, z)
    q = softmax(xp, lifted)
    m, rank = z.shape[0], ranks(lifted)
    slack = float(q.error.sum()) + 2 * m * xp.machine.u
    masses = {s: float(q.value[list(s)].sum()) for n in range(1, m + 1) for s in combinations(range(m), n)}
    surely = min((len(s) for s, mass in masses.items() if mass >= p + slack), default=m)
    perhaps = min((len(s) for s, mass in masses.items() if mass >= p - slack), default=m)
    return [sorted(int(i) for i in np.flatnonzero(rank < n)) for n in range(perhaps, surely + 1)]


def _never_empty(trial: Trial) -> None:
    z = draw_logits(trial)
    p = trial.draw(choice(0.0, 1e-30, 5e-324, 1e-9, 1e-12))
    y = filtered(trial, {"logits": z, "p": p})
    kept = torch.as_tensor(np.asarray(ranks(z.double().numpy()) == 0))
    right = torch.equal(y.value > -torch.inf, kept)
    said = f"torch.equal({y.expression} > -inf, {literal(kept)})"
    trial.assert_true(right, f"p = {p:g} does not keep the most probable token alone", said)


def _all(trial: Trial) -> None:
    m = trial.draw(sizes(1, 6))
    z = trial.tensor(draw_rng(trial).choice([0.0, -1.0, -30.0, -2000.0, 5.0], (2, m)))
    y = filtered(trial, {"logits": z, "p": 1.0})
    said = f"torch.equal({y.expression}, {literal(z)})"
    trial.assert_true(torch.equal(y.value, z), "p = 1 does not keep everything", said)


def _tied_p(trial: Trial) -> None:
    many = trial.dtype_name == "fp32" and trial.draw(choice(False, True))  # half precision adds up too few
    m = 128 if many else trial.draw(sizes(2, 9))
    n = int(draw_rng(trial).integers(1, m + 1))
    z = trial.tensor(np.full((2, m), trial.draw(choice(0.0, 1.5, -3.0))))
    y = filtered(trial, {"logits": z, "p": (n - 0.5) / m})
    kept = torch.arange(m).expand(2, m) < n
    said = f"torch.equal({y.expression} > -inf, {literal(kept.clone())})"
    trial.assert_true(torch.equal(y.value > -torch.inf, kept), f"not the first {n} of {m} equal scores are kept", said)


def _nested_p(trial: Trial) -> None:
    z, rng = draw_logits(trial), draw_rng(trial)
    low, high = sorted(float(p) for p in rng.choice([0.0, 0.1, 0.5, 0.9, 0.99, 1.0], 2, replace=False))
    a, b = (filtered(trial, {"logits": z, "p": p}) for p in (low, high))
    keeps_within(trial, a, b, f"p = {high} keeps less than p = {low} does")


def _shift_p(trial: Trial) -> None:
    z, p = tied_scores(trial), draw_p(trial)
    trial.assume(not undecided(over_float64(trial.dtype_name), lifted_scores(trial, z), p).any())
    a, b = (filtered(trial, {"logits": x, "p": p}) for x in (z, z + trial.draw(choice(100.0, -100.0, 64.0))))
    keeps_same_set(trial, a, b, None, "shifted scores are not kept alike")


_LAWS: dict[str, Any] = {
    "untouched": untouched_law(_p),
    "nucleus": _nucleus,
    "never_empty": _never_empty,
    "all": _all,
    "nested": _nested_p,
    "shift": _shift_p,
    "permutation": permutation_law(_p),
}

CHECKS = (
    *(check(f"top_p_filter.{name}", body, dtypes=("fp32", "bf16")) for name, body in _LAWS.items()),
    check("top_p_filter.ties", _tied_p, dtypes=("fp32", "bf16"), applies=settles_ties),
)
