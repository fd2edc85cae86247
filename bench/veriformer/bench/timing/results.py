"""Validity of timed results: results against the specification, and results that follow arguments.

A call of the same kind with few numbers is judged by the bound that rounding explains. At the size that is timed, where
the formula in running-error arithmetic would take far longer than the call, changed arguments must change the result:
one that was kept from an earlier call does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from veriformer.bench.timing.workloads import Prepared, Workload
from veriformer.spec.arithmetic import FORMATS, RunningError
from veriformer.spec.attention.attention import attention, attention_vjp
from veriformer.spec.efficient.linear_attention import linear_attention, linear_attention_vjp
from veriformer.spec.heads.multi_head_attention import multi_head_attention, multi_head_attention_vjp
from veriformer.spec.language.lm_head import lm_head, lm_head_vjp
from veriformer.spec.layers.feed_forward import feed_forward, feed_forward_vjp
from veriformer.spec.layers.layer_norm import layer_norm, layer_norm_vjp
from veriformer.spec.layers.rms_norm import rms_norm, rms_norm_vjp
from veriformer.spec.layers.swiglu import swiglu, swiglu_vjp
from veriformer.spec.scores.cross_entropy import cross_entropy, cross_entropy_vjp
from veriformer.spec.scores.logsumexp import logsumexp, logsumexp_vjp
from veriformer.spec.scores.softmax import softmax, softmax_vjp

Formula = Callable[..., Any]

FORMULAS: dict[tuple[str, str], tuple[Formula, Formula]] = {
    ("softmax", "all sizes"): (softmax, softmax_vjp),
    ("logsumexp", "all sizes"): (logsumexp, logsumexp_vjp),
    ("cross_entropy", "all sizes"): (cross_entropy, cross_entropy_vjp),
    ("layer_norm", "all sizes"): (layer_norm, layer_norm_vjp),
    ("rms_norm", "all sizes"): (rms_norm, rms_norm_vjp),
    ("feed_forward", "all sizes"): (feed_forward, feed_forward_vjp),
    ("swiglu", "all sizes"): (swiglu, swiglu_vjp),
    ("lm_head", "all sizes"): (lm_head, lm_head_vjp),
    ("attention", "grouped heads"): (attention, attention_vjp),
    ("attention", "a key head for each head"): (attention, attention_vjp),
    ("linear_attention", "all sizes"): (linear_attention, linear_attention_vjp),
    ("linear_attention", "causal"): (
        partial(linear_attention, is_causal=True),
        partial(linear_attention_vjp, is_causal=True),
    ),
    ("multi_head_attention", "all sizes"): (
        partial(multi_head_attention, num_heads=2),
        partial(multi_head_attention_vjp, num_heads=2),
    ),
}
"""By operation and kind of call: the formula, and its gradients, both called with the tensors of the call in order."""

_FEW = {"B": 2, "G": 2, "R": 2, "H": 2, "N": 5, "n": 7, "n_q": 5, "n_k": 7, "d": 6, "f": 9, "V": 11}


def wrong(workload: Workload, operations: Sequence[Any], device: str) -> str | None:
    """Return the error of a small call's result, or None where it is right, or where there is no formula for it."""
    known = FORMULAS.get((workload.family.operation, workload.family.case))
    if known is None:
        return None
    made = workload.prepare(operations, _FEW, device)
    arguments = [x.detach().double().cpu().numpy() if x.is_floating_point() else x.cpu().numpy() for x in made.tensors]
    got = _floats(made())
    xp = RunningError(FORMATS["fp32"])
    raised = [xp.asarray(x) if x.dtype.kind == "f" else x for x in arguments]
    formula, gradients = known
    exact = formula(xp, *raised)
    if workload.backward:
        exact = gradients(xp, *raised, xp.asarray(np.ones(exact.shape)))
    all_exact = [x for x in (exact if isinstance(exact, tuple) else (exact,)) if x is not None]
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
