"""Moments of results of calls that draw random numbers, over many seeds."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from veriformer.verify.comparison.calling import call
from veriformer.verify.comparison.subject import Objects, Prepared
from veriformer.verify.judging import students_t

SEEDS = 32


def moments(objects: Objects, prepared: Prepared) -> dict[str, Any]:
    """Return for each part of the result, per seed: mean, mean square, share of zeros; and the mean of each entry.

    Where a seed raises, return its exception.
    """
    found: dict[str, list[list[float]]] = {}
    sums: dict[str, list[torch.Tensor]] = {}
    for seed in range(SEEDS):
        made = objects.of(prepared)
        inputs = pytree.tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, prepared.inputs)
        record = call(made, inputs, seed=1000 + seed, gradient=False).record
        if record["error"]:
            return {"error": ": ".join(record["error"])}
        for place, x in record["results"].items():
            if isinstance(x, torch.Tensor) and x.is_floating_point() and x.numel():
                wide = x.double()
                found.setdefault(place, []).append(
                    [float(wide.mean()), float(wide.square().mean()), float((wide == 0).double().mean())]
                )
                sums.setdefault(place, []).append(wide)
    every = {place: [torch.stack(xs).mean(0), torch.stack(xs).var(0)] for place, xs in sums.items()}
    return {"all": found, "each": every}


def differences(mine: dict[str, Any], theirs: dict[str, Any], rate: float) -> dict[str, tuple[str, float, float]]:
    """Return for each part of the result a moment that differs more than by chance at this rate: its name, both values.

    Welch's test with the degrees of freedom of the smaller side, which errs on the safe side.
    """
    told: dict[str, tuple[str, float, float]] = {}
    for place, x in mine.get("all", {}).items():
        y = theirs.get("all", {}).get(place)
        if y is None:
            continue
        a, b = torch.tensor(x, dtype=torch.float64), torch.tensor(y, dtype=torch.float64)
        limit = students_t.quantile(SEEDS - 1, 1 - rate / 12)
        error = ((a.var(0) + b.var(0)) / SEEDS).sqrt()
        off = (a.mean(0) - b.mean(0)).abs()
        for i, what in enumerate(("mean", "mean square", "share of zeros")):
            if float(off[i]) > limit * float(error[i]) + 1e-12 * float(a.mean(0)[i].abs()):
                told.setdefault(place, (what, float(a.mean(0)[i]), float(b.mean(0)[i])))
    return told
