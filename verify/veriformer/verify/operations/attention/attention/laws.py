"""Laws of attention: pairs of calls that must agree, and sums that must vanish."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.spec.attention.causal_mask import causal_mask
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.equality import assert_not_constant, between, constant, equal, inner, scale_bound
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import draw_cotangent
from veriformer.verify.laws.pairs import differ_only_where, exact, moves_along, same
from veriformer.verify.operations.attention.attention.draws import (
    Shape,
    draw_causal,
    draw_mask,
    draw_options,
    draw_shape,
    draw_tensors,
    every_row_sees,
    sees,
    stretched,
)
from veriformer.verify.operations.attention.attention.options import draw_grouped, draw_several
from veriformer.verify.operations.attention.attention.record import ATTENTION
from veriformer.verify.operations.attention.causal_mask import alignment
from veriformer.verify.strategies import axes_of_scores, choice, maybe, sizes, values

_KINDS = ("gaussian", "one-signed", "offset", "duplicates", "peaked")


_MILD = ("gaussian", "integers", "one-signed", "duplicates", "sparse")


_ALL = (True, True, True, True)


_ALIKE = ("q", "k", "v")
"""Arguments whose gradients agree wherever results do."""


def _causality(trial: Trial) -> None:
    """Check causality: a change of later keys and values changes no earlier output, and some output that sees it."""
    b, h, groups, n_q, n_k, d_k, d_v = draw_shape(trial)
    n_q, n_k = min(n_q, n_k), max(n_k, n_q, 2)
    shape = (b, h, groups, n_q, n_k, d_k, d_v)
    tensors = draw_tensors(trial, shape, _KINDS)
    window = trial.draw(maybe(sizes(2, n_k)))
    options: dict[str, Any] = {"is_causal": True} if window is None else {"is_causal": True, "window": window}
    options = options if every_row_sees(trial, shape, options) else {"is_causal": True}
    changed = slice(trial.draw(sizes(0, n_k - 1)), n_k)
    other = {**tensors, **options}
    for name in ("k", "v"):
        other[name] = tensors[name].clone()
        other[name][:, :, changed] = 1.5 - 2.0 * tensors[name][:, :, changed]
    one = {**tensors, **options}
    blind = np.asarray(~sees(trial, shape, options)[..., changed].any(-1))[..., None]
    differ_only_where(
        trial, ATTENTION, one, other, blind, "a query's result, after keys that it cannot see have changed"
    )


def _causal_is_mask(trial: Trial) -> None:
    shape = draw_shape(trial)
    causal = draw_causal(trial, shape)
    if not causal:
        causal = {"is_causal": True}
        trial.assume(every_row_sees(trial, shape, causal))
    n_q, n_k = shape[3], shape[4]
    mask = causal_mask(n_q, n_k, window=causal.get("window"), **alignment(trial.claims))
    tensors = draw_tensors(trial, shape, _KINDS)
    one, two = {**tensors, **causal}, {**tensors, "mask": torch.as_tensor(mask)}
    same(trial, ATTENTION, one, two, "causality and the mask that says it", _ALIKE)


def _mask_is_bias(trial: Trial) -> None:
    shape = draw_shape(trial)
    axes = trial.draw(axes_of_scores())
    mask = draw_mask(trial, shape, {}, axes)["mask"]
    bias = torch.where(mask, 0.0, -torch.inf).to(trial.dtype)
    tensors = draw_tensors(trial, shape, _KINDS)
    same(trial, ATTENTION, {**tensors, "mask": mask}, {**tensors, "bias": bias}, "a mask and a bias of −∞", _ALIKE)


def _mask_broadcast(trial: Trial) -> None:
    shape = draw_several(trial)
    b, h, _, n_q, n_k, _, _ = shape
    axes = trial.draw(axes_of_scores())
    mask = draw_mask(trial, shape, {}, axes)["mask"]
    whole = mask.expand(b, h, n_q, n_k).contiguous()
    tensors = draw_tensors(trial, shape, _KINDS)
    same(
        trial, ATTENTION, {**tensors, "mask": mask}, {**tensors, "mask": whole}, "a mask and its broadcast copy", _ALIKE
    )


def _grouped_is_copied(trial: Trial) -> None:
    shape = draw_grouped(trial)
    tensors = draw_tensors(trial, shape, _KINDS)
    options = draw_options(trial, shape)
    repeats = shape[1] // shape[2]
    copied = {name: tensors[name].repeat_interleave(repeats, dim=1) for name in ("k", "v")}
    one, two = {**tensors, **options}, {**tensors, **copied, **options}
    same(trial, ATTENTION, one, two, "grouped heads and copied heads", ("q",))


def _permutation(trial: Trial) -> None:
    """Permuted keys and values give equal results; permuted queries give permuted results."""
    shape = draw_shape(trial)
    _, _, _, n_q, n_k, _, _ = shape
    one = {**draw_tensors(trial, shape, _KINDS), **draw_mask(trial, shape, {}, _ALL)}
    rng = trial.draw(values()).rng
    rows, columns = rng.permutation(n_q), rng.permutation(n_k)
    two = {**one, "q": one["q"][:, :, rows], "k": one["k"][:, :, columns], "v": one["v"][:, :, columns]}
    two["mask"] = one["mask"][:, :, rows][:, :, :, columns]
    moves_along(trial, ATTENTION, one, two, rows, "queries and keys in another order")


def _key_shift(trial: Trial) -> None:
    """Check invariance to a shift of all keys by a vector c, which adds q · c to all scores of a row."""
    shape = draw_shape(trial)
    b, _, groups, _, n_k, d_k, _ = shape
    tensors = draw_tensors(trial, shape, ("integers", "gaussian", "one-signed"))
    rng = trial.draw(values()).rng
    k = trial.tensor(0.25 * rng.integers(-6, 7, (b, groups, n_k, d_k)))
    shift = trial.tensor(0.5 * rng.integers(-4, 5, (b, groups, 1, d_k)))
    causal = draw_causal(trial, shape)
    options = {**causal, **draw_mask(trial, shape, causal, trial.draw(choice(None, (True, True))))}
    one, two = {**tensors, "k": k, **options}, {**tensors, "k": k + shift, **options}
    same(trial, ATTENTION, one, two, "attention over shifted keys", ("q", "v"))


def summed_keys(x: torch.Tensor) -> torch.Tensor:
    """Return the sum over keys in float64."""
    return x.double().sum(-2)


def _conservation(trial: Trial) -> None:
    """Σ_j dk_j = 0 and, for a bias, Σ_j d bias_ij = 0: softmax is invariant under what they would change."""
    shape = draw_shape(trial)
    tensors, options = draw_tensors(trial, shape, _MILD), draw_options(trial, shape)
    for name in ("softcap", "bias", "scale"):
        options.pop(name, None)
    bias = trial.tensor(trial.draw(values(("gaussian", "one-signed"))).array(*stretched(_ALL, _scores(shape))))
    arguments = {**tensors, **options, "bias": bias}
    cotangent = draw_cotangent(trial, exact(trial, ATTENTION, arguments).exact.shape, expanded=False)
    outcome = trial.call(arguments, wrt=("k", "bias"), cotangent=cotangent)
    gradients = ATTENTION.exact_gradients(trial, arguments, cotangent, use_exact_oracle=False)
    assert_not_constant(trial, outcome.gradient("k"), gradients["k"], "gradient of k")
    _vanishes(trial, trial.observe(summed_keys, outcome.gradient("k")), gradients["k"], -2, "the sum of dk over keys")
    of_bias = outcome.gradient("bias")
    rows = Observation(of_bias.value.double().sum(-1), f"{of_bias.expression}.double().sum(-1)")
    _vanishes(trial, rows, gradients["bias"], -1, "the sum of a row of the bias's gradient")


def _scores(shape: Shape) -> tuple[int, int, int, int]:
    return shape[0], shape[1], shape[3], shape[4]


def _vanishes(trial: Trial, observed: Observation, of_terms: Reference, axis: int, what: str) -> None:
    bound = of_terms.bound.sum(axis) * (1 + 2.0**-40)
    size = float(np.abs(of_terms.exact).sum(axis).max(initial=0.0))
    trial.assert_within_bound(observed, Reference(np.zeros_like(bound), bound, scale=size, constant=True), what)


def _scale_balance(trial: Trial) -> None:
    """Scores depend on q and k through their product alone: ⟨q, dq⟩ = ⟨k, dk⟩, whatever the options."""
    shape = draw_shape(trial)
    arguments = {**draw_tensors(trial, shape, _MILD), **draw_options(trial, shape, _MILD)}
    arguments["scale"] = arguments.get("scale") or 0.5  # with 0 there is no gradient to balance
    cotangent = draw_cotangent(trial, exact(trial, ATTENTION, arguments).exact.shape)
    outcome = trial.call(arguments, wrt=("q", "k"), cotangent=cotangent)
    gradients = ATTENTION.exact_gradients(trial, arguments, cotangent, use_exact_oracle=False)
    assert_not_constant(trial, outcome.gradient("q"), gradients["q"], "gradient of q")
    q, k = (np.abs(arguments[name].double().numpy()) for name in ("q", "k"))
    size = float((q * np.abs(gradients["q"].exact)).sum())
    bound = float(scale_bound(gradients["q"].bound, q).sum() + scale_bound(gradients["k"].bound, k).sum()) * (
        1 + 2.0**-40
    )
    bound += 2.0**-46 * size if np.isfinite(bound) else 0.0
    terms = constant(arguments["q"]), outcome.gradient("q"), constant(arguments["k"]), outcome.gradient("k")
    law = Reference(np.asarray(0.0), np.asarray(bound), scale=size, constant=True)
    trial.assert_within_bound(trial.observe(inner, *terms), law, "⟨q, dq⟩ − ⟨k, dk⟩")


def _convexity(trial: Trial) -> None:
    """Weights are nonnegative with sum 1: equal values are returned unchanged, others stay between their extremes."""
    shape = draw_shape(trial, d_v=(1, 4))
    arguments = {**draw_tensors(trial, shape, _KINDS), **draw_options(trial, shape)}
    repeats = shape[1] // shape[2]
    if trial.draw(st.booleans()):
        arguments["v"] = arguments["v"][:, :, :1].expand(arguments["v"].shape).contiguous()
    reference = exact(trial, ATTENTION, arguments)
    seen = sees(trial, shape, arguments)[..., None]
    v = np.repeat(arguments["v"].double().numpy(), repeats, axis=1)[:, :, None]
    low = np.where(seen, v, np.inf).min(-2)
    high = np.where(seen, v, -np.inf).max(-2)
    result = trial.call(arguments).result
    assert_not_constant(trial, result, reference, "result")
    between(trial, result, low, high, reference.bound, "how far the result is outside the visible values")


def combined(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return 2 a − b in float64."""
    return 2.0 * a.double() - b.double()


def _linear_in_values(trial: Trial) -> None:
    shape = draw_shape(trial)
    arguments = {**draw_tensors(trial, shape, _KINDS), **draw_options(trial, shape)}
    rng = trial.draw(values()).rng
    v1, v2 = (trial.tensor(0.5 * rng.integers(-6, 7, tuple(arguments["v"].shape))) for _ in range(2))
    calls = [{**arguments, "v": v} for v in (v1, v2, 2.0 * v1 - v2)]
    references = [exact(trial, ATTENTION, call) for call in calls]
    results = [trial.call(call).result for call in calls]
    mixed = trial.observe(combined, results[0], results[1])
    bound = 2.0 * references[0].bound + references[1].bound
    size = 2.0 * np.abs(references[0].exact) + np.abs(references[1].exact)
    of_mixed = Reference(references[2].exact, (bound + 2.0**-50 * size) * (1 + 2.0**-40))
    equal(trial, results[2], mixed, references[2], of_mixed, "attention of 2 v₁ − v₂")


_LAWS: dict[str, Any] = {
    "causality": _causality,
    "causal_is_mask": _causal_is_mask,
    "mask_is_bias": _mask_is_bias,
    "mask_broadcast": _mask_broadcast,
    "grouped_is_copied": _grouped_is_copied,
    "permutation": _permutation,
    "key_shift": _key_shift,
    "convexity": _convexity,
    "linear_in_values": _linear_in_values,
}


CHECKS = (
    *(check(f"attention.{name}", body) for name, body in _LAWS.items()),
    # sums that vanish: in halves the bounds leave them little to say
    check("attention.conservation", _conservation, dtypes=("fp64", "fp32")),
    check("attention.scale_balance", _scale_balance, dtypes=("fp64", "fp32")),
)
