"""Laws of linear attention."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.laws.equality import assert_not_constant, between, equal, finite, slice_reference, slice_result
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import judge_with_gradients
from veriformer.verify.laws.pairs import differ_only_where, exact, moves_along, same
from veriformer.verify.operations.attention.linear_attention.record import LINEAR_ATTENTION as LINEAR
from veriformer.verify.operations.attention.linear_attention.record import draw_linear, draw_shape, draw_tensors
from veriformer.verify.strategies import choice, extent, sizes, values

_MILD = ("integers", "gaussian", "ties", "one-signed", "duplicates", "sparse")


def _prefix(trial: Trial) -> None:
    """Row i of the causal form is query i alone over the keys up to it."""
    b, h, n_q, n_k, d, d_v = draw_shape(trial)
    n_q, n_k = (min(n_q, n_k), max(n_q, n_k)) if n_q > 8 else (n_q, n_k)
    n_k = max(n_q, n_k) if trial.claims.convention("causal.alignment") == "bottom-right" else n_q
    tensors = draw_tensors(trial, (b, h, n_q, n_k, d, d_v))
    whole = {**tensors, "is_causal": True}
    i = trial.draw(sizes(0, n_q - 1))
    stop = i + 1 + n_k - n_q
    alone = {"q": tensors["q"][:, :, i : i + 1], "k": tensors["k"][:, :, :stop], "v": tensors["v"][:, :, :stop]}
    row = (slice(None), slice(None), slice(i, i + 1))
    of_whole = exact(trial, LINEAR, whole)
    a, other = trial.call(whole).result, trial.call(alone).result
    trial.assert_within_bound(a, of_whole, "result")
    what = "a row of the causal form, and its query alone"
    equal(trial, slice_result(a, row), other, slice_reference(of_whole, row), exact(trial, LINEAR, alone), what)


def _causality(trial: Trial) -> None:
    b, h, n_q, n_k, d, d_v = draw_shape(trial)
    n_q, n_k = (min(n_q, n_k), max(n_q, n_k)) if n_q > 8 else (n_q, n_k)
    n_k = max(n_q, n_k, 2) if trial.claims.convention("causal.alignment") == "bottom-right" else max(n_q, 2)
    n_q = min(n_q, n_k) if n_k > n_q else n_k
    tensors = draw_tensors(trial, (b, h, n_q, n_k, d, d_v), _MILD)
    one: dict[str, Any] = {**tensors, "is_causal": True}
    t = trial.draw(sizes(0, n_k - 1))
    two: dict[str, Any] = dict(one)
    for name in ("k", "v"):
        two[name] = one[name].clone()
        two[name][:, :, t:] = 1.5 - 2.0 * one[name][:, :, t:]
    blind = np.broadcast_to((np.arange(n_q) + n_k - n_q < t)[:, None], (b, h, n_q, d_v))
    differ_only_where(trial, LINEAR, one, two, blind, "a result, after keys that it cannot see have changed")


def _keys_permuted(trial: Trial) -> None:
    shape = draw_shape(trial)
    one: Arguments = draw_tensors(trial, shape)
    rng = trial.draw(values()).rng
    rows, columns = rng.permutation(shape[2]), rng.permutation(shape[3])
    two = {"q": one["q"][:, :, rows], "k": one["k"][:, :, columns], "v": one["v"][:, :, columns]}
    moves_along(trial, LINEAR, one, two, rows, "queries and keys in another order")


_DIRECT = replace(LINEAR, formulas=LINEAR.formulas[:1])
"""Without the feature map that adds 1 last: what that loses of a feature cancels where all values are equal."""


def _of_small_features(trial: Trial, x: torch.Tensor) -> torch.Tensor:
    """Draw entries from −14 to −8: features near 1e-5, whose products are far below any ε and far from underflow."""
    return trial.tensor(trial.draw(values()).rng.uniform(-14.0, -8.0, tuple(x.shape)))


def _convexity(trial: Trial) -> None:
    """Weights are nonnegative with sum 1: equal values are returned unchanged, others stay between their extremes."""
    a: dict[str, Any] = dict(draw_linear(trial, d_v=(1, 4)))
    n_q, n_k = a["q"].shape[2], a["k"].shape[2]
    small = trial.dtype is not torch.float16 and trial.draw(choice(False, True))
    if small:
        a |= {name: _of_small_features(trial, a[name]) for name in ("q", "k")}
    alike = trial.draw(choice(True, False, True))
    if alike:
        a["v"] = a["v"][:, :, :1].expand(a["v"].shape).contiguous()
    if trial.dtype is torch.float16:  # whose range a sum of such values leaves, and no mean of them
        a["v"] = a["v"].clamp(-15, 15) * 2.0**12
    reference = exact(trial, _DIRECT if small and alike else LINEAR, a)
    seen = np.arange(n_k) <= np.arange(n_q)[:, None] + n_k - n_q if a.get("is_causal") else np.ones((n_q, n_k), bool)
    v = a["v"].double().numpy()[:, :, None]
    low = np.where(seen[..., None], v, np.inf).min(-2)
    high = np.where(seen[..., None], v, -np.inf).max(-2)
    result = trial.call(a).result
    assert_not_constant(trial, result, reference, "result")
    between(trial, result, low, high, reference.bound, "how far the result is outside the visible values")


def combined(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return 2 a − b in float64."""
    return 2.0 * a.double() - b.double()


def _linear_in_values(trial: Trial) -> None:
    a = draw_linear(trial)
    rng = trial.draw(values()).rng
    v1, v2 = (trial.tensor(0.5 * rng.integers(-6, 7, tuple(a["v"].shape))) for _ in range(2))
    calls = [{**a, "v": v} for v in (v1, v2, 2.0 * v1 - v2)]
    of = [exact(trial, LINEAR, call) for call in calls]
    results = [trial.call(call).result for call in calls]
    size = 2.0 * np.abs(of[0].exact) + np.abs(of[1].exact)
    bound = (2.0 * of[0].bound + of[1].bound + 2.0**-50 * size) * (1 + 2.0**-40)
    mixed = trial.observe(combined, results[0], results[1])
    equal(trial, results[2], mixed, of[2], Reference(of[2].exact, bound), "attention of 2 v₁ − v₂")


def _duplicated_keys(trial: Trial) -> None:
    one = draw_tensors(trial, draw_shape(trial))
    times = trial.draw(sizes(2, 3))
    two = {**one, **{name: one[name].repeat(1, 1, times, 1) for name in ("k", "v")}}
    same(trial, LINEAR, one, two, "every key given several times", ("q",))


def _empty_row(trial: Trial) -> None:
    """Check more queries than keys under causality, or no key at all."""
    b, h, n_q, n_k, d, d_v = draw_shape(trial)
    trial.assume(trial.claims.convention("attention.empty_row") == "zero")
    if trial.draw(choice(False, False, True)):
        tensors = draw_tensors(trial, (b, h, n_q, 0, d, d_v), _MILD)
        a: Arguments = {**tensors, **({"is_causal": True} if trial.draw(st.booleans()) else {})}
    else:
        n_k = min(n_q, n_k)
        trial.assume(trial.claims.convention("causal.alignment") == "bottom-right")
        a = {**draw_tensors(trial, (b, h, n_k + trial.draw(sizes(1, 3)), n_k, d, d_v), _MILD), "is_causal": True}
    judge_with_gradients(trial, LINEAR, a)
    trial.effective.append(True)


def _chunks(trial: Trial) -> None:
    trial.only_large(8.0)
    judge_with_gradients(trial, LINEAR, draw_linear(trial, ("gaussian", "one-signed", "sparse")))


def _range(trial: Trial) -> None:
    """Check features whose products, or whose sum over the keys, leave the range of fp16; their mean does not."""
    many = trial.draw(st.booleans())
    b, h, n_q, n_k, d, d_v = draw_shape(trial)
    n_k = trial.draw(extent(65, 200)) if many else max(n_q, n_k, 2)
    tensors = draw_tensors(trial, (b, h, n_q, n_k, d, d_v), ("gaussian", "integers"))
    rng = trial.draw(values()).rng
    size = {"q": 1.0, "k": 2000.0} if many else {"q": 400.0, "k": 400.0}
    loud = {name: trial.tensor(size[name] * rng.integers(1, 3, tuple(tensors[name].shape))) for name in size}
    arguments: dict[str, Any] = {**tensors, **loud}
    aligned = n_q == n_k or trial.claims.convention("causal.alignment") == "bottom-right"
    arguments |= {"is_causal": True} if aligned and trial.draw(st.booleans()) else {}
    reference = LINEAR.exact(trial, arguments, use_exact_oracle=False)
    outcome = trial.call(arguments)
    agrees(trial, LINEAR, arguments, outcome, reference)
    finite(trial, outcome.result, "the mean of values by loud keys")


_LAWS: dict[str, Any] = {
    "prefix": _prefix,
    "causality": _causality,
    "keys_permuted": _keys_permuted,
    "linear_in_values": _linear_in_values,
    "duplicated_keys": _duplicated_keys,
}


CHECKS = (
    *(check(f"linear_attention.{name}", body, dtypes=("fp64", "fp32")) for name, body in _LAWS.items()),
    check("linear_attention.convexity", _convexity, dtypes=("fp64", "fp32", "fp16")),
    check("linear_attention.range", _range, dtypes=("fp16",)),
    check("linear_attention.empty_row", _empty_row, dtypes=("fp64", "fp32")),
    check("linear_attention.chunks", _chunks, dtypes=("fp64", "fp32"), effort=1),
)
