"""Attention at its edges: rows that see nothing, hidden poison, sizes of zero, huge scores."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.contract import dtypes
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees, gradients_agree, has_form
from veriformer.verify.laws.equality import finite
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import draw_cotangent, judge_with_gradients
from veriformer.verify.operations.attention.attention.draws import (
    Shape,
    draw_bias,
    draw_hiding,
    draw_options,
    draw_shape,
    draw_tensors,
    sees,
)
from veriformer.verify.operations.attention.attention.record import ATTENTION
from veriformer.verify.scripts.script import literal
from veriformer.verify.strategies import choice, sizes, values

_KINDS = ("integers", "gaussian", "one-signed", "offset", "duplicates")


def _empty_row(trial: Trial) -> None:
    shape, arguments = _draw_empty_rows(trial)
    convention = trial.claims.convention("attention.empty_row")
    if convention == "zero":
        judge_with_gradients(trial, ATTENTION, arguments)
        trial.effective.append(True)
        return
    empty = np.asarray(~sees(trial, shape, arguments).any(-1))
    trial.assume(shape[4] > 0)
    reference = ATTENTION.exact(trial, arguments, use_exact_oracle=False)[0]
    result = trial.call(arguments).result
    if convention == "nan":
        unjudged = Reference(reference.exact, np.where(empty[..., None], np.inf, reference.bound), constant=True)
        trial.assert_within_bound(result, unjudged, "result at rows that see a key")
        rows = torch.as_tensor(empty)
        all_nan = bool(result.value[rows].isnan().all())
        expression = f"bool({result.expression}[{literal(rows)}].isnan().all())"
        trial.assert_true(all_nan, "a row that sees nothing is not NaN, as claimed", expression)
        return
    mean = ATTENTION.exact(
        trial, {"q": 0.0 * arguments["q"], "k": arguments["k"], "v": arguments["v"]}, use_exact_oracle=False
    )[0]
    exact = np.where(empty[..., None], mean.exact, reference.exact)
    bound = np.where(empty[..., None], mean.bound, reference.bound)
    trial.assert_within_bound(
        result, Reference(exact, bound, constant=True), "result, the mean of all values where nothing is seen"
    )


def _draw_empty_rows(trial: Trial) -> tuple[Shape, dict[str, Any]]:
    """Draw calls in which some query sees nothing: hidden by a mask, by a bias, by causality, or for want of keys."""
    b, h, groups, n_q, n_k, d_k, d_v = draw_shape(trial)
    why = trial.draw(choice("mask", "causal and mask", "bias", "causal", "no keys", "causal and mask", "bias"))
    if why.startswith("causal") and trial.claims.convention("causal.alignment") == "bottom-right":
        n_q, n_k = max(n_q, n_k) + 1, min(n_q, n_k)
    n_k = 0 if why == "no keys" else n_k
    shape = (b, h, groups, n_q, n_k, d_k, d_v)
    tensors = draw_tensors(trial, shape, _KINDS)
    if why == "no keys":
        return shape, {**tensors, **({"is_causal": True} if trial.draw(st.booleans()) else {})}
    rows = trial.draw(values()).rng.random((b, h, n_q, 1)) < 0.5
    rows[0, 0, 0] = True
    dark = torch.as_tensor(rows[(0,) * trial.draw(choice(0, 2, 1))])  # of rank 4, 2 or 3
    if why.startswith("causal"):
        softcap = trial.option("softcap", None, 2.0)
        bias = draw_bias(trial, shape, {}, trial.draw(choice(None, (True, True))), ("gaussian",))
        window = trial.option("window", None, 2)
        mask = {"mask": ~dark} if why == "causal and mask" else {}
        return shape, {**tensors, **softcap, **bias, "is_causal": True, **window, **mask}
    options = draw_options(trial, shape)
    if why == "mask":
        options["mask"] = ~dark if trial.draw(st.booleans()) else (~dark).expand(*dark.shape[:-1], n_k).contiguous()
    else:
        options["bias"] = torch.where(dark, -torch.inf, torch.zeros(n_k)).to(trial.dtype)
    return shape, {**tensors, **options}


def _no_query(trial: Trial) -> None:
    b, h, groups, _, n_k, d_k, d_v = draw_shape(trial)
    tensors = draw_tensors(trial, (b, h, groups, 0, n_k, d_k, d_v))
    outcome = trial.call(tensors, wrt=("q", "k", "v"), cotangent=trial.tensor(np.zeros((b, h, 0, d_v))))
    has_form(trial, outcome.result, (b, h, 0, d_v), trial.dtype)
    for name in ("k", "v"):
        zero = np.zeros(tuple(tensors[name].shape))
        trial.assert_within_bound(
            outcome.gradient(name), Reference(zero, zero, constant=True), f"gradient of {name} without a query"
        )


_TILES = {"batch": (1, 1), "groups": (1, 1), "repeats": (1, 1), "n_q": (65, 180), "n_k": (2, 2)}


def _hidden_poison(trial: Trial) -> None:
    """NaN and infinities in keys and values that a query cannot see reach neither its result nor its gradient."""
    tiles = trial.draw(choice(False, False, False, True))  # some of which hide nothing
    if tiles:
        trial.only_large()
    b, h, groups, n_q, n_k, d_k, d_v = draw_shape(trial, _TILES if tiles else {})
    n_k = n_q if tiles else max(n_k, 2)
    shape = (b, h, groups, n_q, n_k, d_k, d_v)
    clean: dict[str, Any] = draw_tensors(trial, shape, _KINDS)
    rng = trial.draw(values()).rng
    clean |= {"is_causal": True} if tiles else draw_hiding(trial, shape, rng)
    repeats = h // groups
    seen = sees(trial, shape, clean)
    by_group = seen.reshape(b, groups, repeats, n_q, n_k)
    poisoned = ~by_group.all((2, 3)) & (rng.random((b, groups, n_k)) < 0.7)
    trial.assume(bool(poisoned.any()))
    dirty = dict(clean)
    for name in trial.draw(choice(("k", "v"), ("v",), ("k",))):
        what = trial.draw(choice(torch.nan, torch.inf, -torch.inf))
        dirty[name] = torch.where(torch.as_tensor(poisoned)[..., None], what, clean[name])
    blind = np.asarray(~(seen & np.repeat(poisoned, repeats, axis=1)[:, :, None]).any(-1))[..., None]
    trial.assume(bool(blind.any()))
    reference = ATTENTION.exact(trial, clean, use_exact_oracle=False)[0]
    cotangent = draw_cotangent(trial, reference.exact.shape)
    wrt = trial.draw(choice(("q", "k", "v"), ("q",)))
    outcome = trial.call(dirty, wrt=wrt, cotangent=cotangent)
    trial.assert_within_bound(outcome.result, _only(reference, blind), "result of a query that cannot see the poison")
    gradient = ATTENTION.exact_gradients(trial, clean, cotangent, use_exact_oracle=False)["q"]
    trial.assert_within_bound(
        outcome.gradient("q"), _only(gradient, blind), "gradient of a query that cannot see the poison"
    )


def _hidden_scores(trial: Trial) -> None:
    """Hidden keys may score far above the visible ones, whose scores may lie far below the number that masks."""
    b, h, groups, n_q, n_k, _, d_v = draw_shape(trial)
    n_k = max(n_k, 2)
    shape = (b, h, groups, n_q, n_k, 4, d_v)
    arguments: dict[str, Any] = draw_tensors(trial, shape, ("integers", "gaussian"))
    rng = trial.draw(values()).rng
    arguments |= draw_hiding(trial, shape, rng)
    by_group = sees(trial, shape, arguments).reshape(b, groups, h // groups, n_q, n_k)
    loud = np.asarray(~by_group.any((2, 3)))[..., None]
    direction = rng.choice([-1.0, 1.0], 4)
    q = 100.0 * direction + rng.integers(-2, 3, (b, h, n_q, 4))
    if trial.dtype_name in dtypes.HALVES:
        k = np.where(loud, 120.0 * direction, 0.0)  # scores of 0 are exact in any dtype
    else:
        level = trial.draw(choice(1.0, -1.0)) * 120.0 * np.where(loud, 1.0, -1.0)
        k = level * direction + rng.integers(-2, 3, (b, groups, n_k, 4))
    tensors = {**arguments, "q": trial.tensor(q), "k": trial.tensor(k)}
    trial.assume(bool(loud.any()))
    judge_with_gradients(trial, ATTENTION, tensors)


def _only(reference: Reference, judged: np.ndarray) -> Reference:
    return Reference(reference.exact, np.where(judged, reference.bound, np.inf))


def _range(trial: Trial) -> None:
    """Check scores of 1e5, far apart from each other: each query takes the value of one key."""
    b, groups, repeats = trial.draw(sizes(1, 2)), trial.draw(sizes(1, 2)), trial.draw(sizes(1, 2))
    n_q, n_k, d_v = trial.draw(sizes(1, 4)), trial.draw(sizes(2, 5)), trial.draw(sizes(1, 3))
    rng = trial.draw(values()).rng
    direction = rng.choice([-1.0, 1.0], 4)
    levels = rng.permuted(np.tile([1.0, -1.0, -0.25, 0.5, 0.0], (b, groups, 1)), axis=-1)[..., :n_k]
    signs = rng.choice([-1.0, 1.0], (b, groups * repeats, n_q, 1))
    v = trial.tensor(trial.draw(values(_KINDS)).array(b, groups, n_k, d_v))
    arguments: Arguments = {
        "q": trial.tensor(200.0 * signs * direction),
        "k": trial.tensor(150.0 * levels[..., None] * direction),
        "v": v,
    }
    scale = trial.option("scale", 1.0, None, -1.0)
    causal = {"is_causal": True} if trial.draw(st.booleans()) and n_q <= n_k else {}
    arguments = {**arguments, **scale, **causal}
    references = ATTENTION.exact(trial, arguments, use_exact_oracle=False)
    cotangent = draw_cotangent(trial, references[0].exact.shape)
    outcome = trial.call(arguments, wrt=("q", "k", "v"), cotangent=cotangent)
    agrees(trial, ATTENTION, arguments, outcome, references)
    gradients_agree(trial, outcome, ATTENTION.exact_gradients(trial, arguments, cotangent, use_exact_oracle=False))
    # In halves such scores are in doubt by more than any bound can follow; that all is finite holds without one.
    finite(trial, outcome.result, "the result")
    for name in outcome.gradients:
        finite(trial, outcome.gradient(name), f"the gradient of {name}")


CHECKS = (
    check("attention.empty_row", _empty_row, convention="attention.empty_row", effort=1.5),
    check("attention.no_query", _no_query, effort=0.5),
    check("attention.hidden_poison", _hidden_poison),
    check("attention.hidden_scores", _hidden_scores),
    check("attention.range", _range),
)
