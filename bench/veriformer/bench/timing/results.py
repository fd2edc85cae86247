"""Validity of timed results: results against the specification, and results that follow arguments.

A call of the same kind with few numbers is judged by the bound that rounding explains. At the size that is timed, where
the formula in running-error arithmetic would take far longer than the call, changed arguments must change the result:
one that was kept from an earlier call does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from veriformer.bench.operations.family import Family
from veriformer.bench.timing.workloads import Prepared, Workload
from veriformer.spec.arithmetic import FORMATS, RunningError
from veriformer.spec.operations import OPERATIONS
from veriformer.spec.operations.call import Tensor

OPTIONS: dict[tuple[str, str], dict[str, Any]] = {
    ("linear_attention", "causal"): {"is_causal": True},
    ("multi_head_attention", "all sizes"): {"num_heads": 2},
}
"""By operation and kind of call, the options of the call beside its tensors."""

_FEW = {"B": 2, "G": 2, "R": 2, "H": 2, "N": 5, "n": 7, "n_q": 5, "n_k": 7, "d": 6, "f": 9, "V": 11}


def is_judged(family: Family) -> bool:
    """Return whether calls of the family are called with the tensors of a formula that has a gradient, and no more."""
    record = OPERATIONS.get(family.operation)
    if record is None or record.gradient is None or not set(family.letters.split()) <= set(_FEW):
        return False
    return all(isinstance(one, Tensor) for one in record.call.values() if one.required)


def wrong(workload: Workload, operations: Sequence[Any], device: str) -> str | None:
    """Return the error of a small call's result, or None where it is right, or where there is no formula for it."""
    if not is_judged(workload.family):
        return None
    record = OPERATIONS[workload.family.operation]
    options = OPTIONS.get((workload.family.operation, workload.family.case), {})
    made = workload.prepare(operations, _FEW, device)
    arguments = [x.detach().double().cpu().numpy() if x.is_floating_point() else x.cpu().numpy() for x in made.tensors]
    got = _floats(made())
    xp = RunningError(FORMATS["fp32"])
    raised = [xp.asarray(x) if x.dtype.kind == "f" else x for x in arguments]
    assert record.formula is not None
    assert record.gradient is not None
    exact = record.formula(xp, *raised, **options)
    if workload.backward:
        exact = record.gradient(xp, *raised, xp.asarray(np.ones(exact.shape)), **options)
    several = exact[: len(record.differentiable)] if isinstance(exact, tuple) else (exact,)
    all_exact = [x for x in several if x is not None]
    for x, wanted in zip(got, all_exact, strict=True):
        value, bound = xp.judgeable(wanted)
        error = np.abs(x.double().cpu().numpy() - value)
        ratio = float(np.max(error / np.where(bound > 0, bound, np.finfo(np.float32).tiny), initial=0))
        if not ratio <= 1:
            return f"the result is wrong: its error is {ratio:.3g} times what rounding explains"
    return None


def kept(made: Prepared) -> str | None:
    """Return the fault if the result ignores changed arguments; None where it follows them, or where there are none."""
    floating = [x for x in made.tensors if x.is_floating_point()]
    before = [x.detach().clone() for x in _floats(made())]
    if not floating or not before:
        return None
    values = [x.detach().clone() for x in floating]
    with torch.no_grad():
        for x in floating:
            x.copy_(torch.randn_like(x))
    after = [x.detach().clone() for x in _floats(made())]
    with torch.no_grad():
        for x, value in zip(floating, values, strict=True):
            x.copy_(value)
    if all(torch.equal(a, b) for a, b in zip(before, after, strict=True)):
        return "the result is cached: it stays the same where the arguments change"
    return None


def _floats(result: Any) -> list[torch.Tensor]:
    return [x for x in tree_leaves(result) if isinstance(x, torch.Tensor) and x.is_floating_point()]
