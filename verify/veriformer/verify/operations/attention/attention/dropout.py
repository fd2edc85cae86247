"""Dropout of attention weights. With diagonal values the dropped weight matrix itself is the result."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.judging.arguments import array
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees, gradients_agree
from veriformer.verify.laws.chance import ERROR_RATE, agreement, kept_share, share, under_its_rate
from veriformer.verify.laws.equality import constant
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import draw_cotangent, draw_wrt, judge_with_gradients
from veriformer.verify.operations.attention.attention.draws import Shape, draw_options, draw_shape, draw_tensors, sees
from veriformer.verify.operations.attention.attention.record import ATTENTION
from veriformer.verify.scripts.script import Seed
from veriformer.verify.strategies import choice, seeds, values

_MILD = ("gaussian", "integers", "sparse", "small")


def _dropped(trial: Trial, p: float) -> dict[str, Any]:
    return {"dropout_p": p, "training": True, "generator": Seed(trial.draw(seeds()))}


def _diagonal(trial: Trial, shape: Shape) -> torch.Tensor:
    """Draw values [B, G, n_k, n_k] with numbers between ½ and 2, of either sign, on the diagonal."""
    b, _, groups, _, n_k, _, _ = shape
    rng = trial.draw(values()).rng
    diagonal = rng.choice([-1.0, 1.0], (b, groups, n_k)) * rng.uniform(0.5, 2.0, (b, groups, n_k))
    return trial.tensor(diagonal[..., None] * np.eye(n_k))


def _off(trial: Trial) -> None:
    shape = draw_shape(trial)
    p, training = trial.draw(choice((0.0, True), (0.4, False), (0.9, False)))
    off = {"dropout_p": p, **trial.option("training", *((True,) if training else (None, False)))}
    given = {"generator": Seed(trial.draw(seeds()))} if trial.draw(st.booleans()) else {}
    judge_with_gradients(trial, ATTENTION, {**draw_tensors(trial, shape), **draw_options(trial, shape), **off, **given})


def _weights(trial: Trial, p: float) -> Arguments:
    """Draw a call whose result is the dropped weight matrix, nothing hidden; it has 160 weights or more."""
    n_k = trial.draw(choice(5, 6, 9))
    shape = (2, trial.draw(choice(2, 4)), 2, trial.draw(choice(8, 11)), n_k, 3, n_k)
    tensors = draw_tensors(trial, shape, ("small", "gaussian"))
    return {**tensors, "v": _diagonal(trial, shape), **_dropped(trial, p)}


def _scale(trial: Trial) -> None:
    """Every weight is 0 or w / (1 − p); some are kept and some are not; with p = 1 none is."""
    p = trial.draw(choice(0.25, 0.4, 0.6, 0.5, 1.0))
    arguments = _weights(trial, p)
    if p == 1.0:
        _none_left(trial, arguments)
        return
    outcome = trial.call(arguments)
    keep, e = array(outcome.result.value) != 0, outcome.result.expression
    trial.assert_true(bool(keep.any()), "every weight is dropped", f"bool(({e} != 0).any())")
    trial.assert_true(not keep.all(), "no weight is dropped", f"not bool(({e} != 0).all())")

    def judge(rate: float) -> None:
        known = {**arguments, "keep": keep, "dropout_p": rate}
        agrees(trial, ATTENTION, arguments, outcome, ATTENTION.exact(trial, known, use_exact_oracle=False))

    under_its_rate(trial, p, judge)


def _none_left(trial: Trial, arguments: Arguments) -> None:
    names = ("q", "k", "v")
    zeros = {name: np.zeros(tuple(arguments[name].shape)) for name in names}
    result = np.zeros((*arguments["q"].shape[:3], arguments["v"].shape[-1]))
    outcome = trial.call(arguments, wrt=names, cotangent=trial.tensor(1.0 + result))
    trial.assert_within_bound(
        outcome.result, Reference(result, result, constant=True), "result with every weight dropped"
    )
    for name, zero in zeros.items():
        trial.assert_within_bound(
            outcome.gradient(name), Reference(zero, zero, constant=True), f"gradient of {name}, all dropped"
        )


def _generator(trial: Trial) -> None:
    """Equal states of the generator give equal masks for equal shapes, other states others."""
    p = trial.draw(choice(0.4, 0.25, 0.6))
    arguments = _weights(trial, p)
    one, two = trial.call(arguments).result, trial.call(arguments).result
    other = trial.call({**arguments, "generator": Seed(arguments["generator"].value + 1)}).result
    a, b, c = (x.expression for x in (one, two, other))
    same = bool(((one.value != 0) == (two.value != 0)).all())
    trial.assert_true(same, "equal generator states drop other weights", f"bool((({a} != 0) == ({b} != 0)).all())")
    apart = bool(((one.value != 0) != (other.value != 0)).any())
    trial.assert_true(
        apart, "another generator state drops the same weights", f"bool((({a} != 0) != ({c} != 0)).any())"
    )
    grown = trial.call(arguments, wrt=("q", "v"), cotangent=torch.ones_like(one.value)).result
    kept = bool(((one.value != 0) == (grown.value != 0)).all())
    said = f"bool((({a} != 0) == ({grown.expression} != 0)).all())"
    trial.assert_true(kept, "a call that asks for gradients drops other weights", said)
    free = {key: value for key, value in arguments.items() if key != "generator"}
    first, second = trial.call(free).result, trial.call(free).result
    d, e = first.expression, second.expression
    moved = bool(((first.value != 0) != (second.value != 0)).any())
    trial.assert_true(moved, "two calls without a generator drop the same", f"bool((({d} != 0) != ({e} != 0)).any())")


def _uniform(trial: Trial, p: float, shape: tuple[int, ...] | None = None) -> Arguments:
    """Draw a call whose result shows the mask of dropout: weights that are all equal, values that are the identity."""
    shapes = (2, 4, 16, 16), (3, 2, 16, 24), (2, 2, 32, 16), (1, 2, 128, 128)
    b, h, n_q, n_k = shape or trial.draw(choice(*shapes))
    zero = trial.tensor(np.zeros((b, h, n_q, 2)))
    k = trial.tensor(trial.draw(values(("gaussian",))).array(b, h, n_k, 2))
    v = trial.tensor(np.broadcast_to(np.eye(n_k), (b, h, n_k, n_k)))
    return {"q": zero, "k": k, "v": v, **_dropped(trial, p)}


def _rate(trial: Trial) -> None:
    ordinary, fine = trial.draw(choice(0.25, 0.1, 0.7, 0.9)), trial.draw(choice(0.002, 0.998))
    for p, arguments in ((ordinary, _uniform(trial, ordinary)), (fine, _uniform(trial, fine, (1, 2, 128, 128)))):
        _judge_rate(trial, arguments, p)


def _judge_rate(trial: Trial, arguments: Arguments, p: float) -> None:
    outcome = trial.call(arguments)
    kept = trial.observe(kept_share, outcome.result)

    def judge(rate: float) -> None:
        trial.assert_within_bound(
            kept, share(outcome.result.value.numel(), 1.0 - rate), f"share of weights kept with p = {rate}"
        )
        if rate != p:  # then the scale must be that of the other rate, too
            known = {**arguments, "keep": array(outcome.result.value) != 0, "dropout_p": rate}
            agrees(trial, ATTENTION, arguments, outcome, ATTENTION.exact(trial, known, use_exact_oracle=False))

    under_its_rate(trial, p, judge)


def _independence(trial: Trial) -> None:
    """Weights are dropped independently: neighbours along any axis agree as often as by chance."""
    p = trial.draw(choice(0.3, 0.5, 0.7))
    result = trial.call(_uniform(trial, p)).result
    shape = result.value.shape
    lags = {3: (1, 2, 4, 16, 32, 64), 2: (1, 2, 16, 32, 64), 1: (1,), 0: (1,)}
    for axis, lag in [(i, lag) for i in lags for lag in lags[i] if 2 * lag <= shape[i]]:
        pairs = shape[axis] // (2 * lag) * lag * (result.value.numel() // shape[axis])
        observed = trial.observe(agreement, result, constant(torch.tensor([axis, lag])))
        what = f"share of weights {lag} apart along axis {axis} that fare alike"
        trial.assert_within_bound(observed, share(pairs, p * p + (1 - p) * (1 - p)), what)


def _gradient(trial: Trial) -> None:
    """The backward pass drops the weights that the forward pass dropped, and scales what it kept."""
    _judge_dropped(trial, draw_shape(trial, diagonal=True))


def _long(trial: Trial) -> None:
    """Judge dropout over sequences longer than a tile."""
    trial.only_large(2.0)
    few = {"batch": (1, 2), "groups": (1, 2), "repeats": (1, 2)}
    _judge_dropped(trial, draw_shape(trial, {**few, "n_q": (33, 200), "n_k": (33, 200)}, diagonal=True))


def _underflowed(trial: Trial, arguments: Arguments, keep: np.ndarray) -> np.ndarray:
    """Return the mask of weights that seem dropped but may only have underflowed: their gradient may count.

    Value and scale make at most five times as much of a weight, so one that becomes 0 by itself is among these, too.
    """
    size = np.abs(ATTENTION.exact(trial, {**arguments, "keep": np.ones_like(keep)}, use_exact_oracle=False)[0].exact)
    tiny: np.ndarray = ~keep & (size > 0) & (size < 8 * trial.format.smallest_subnormal)
    return tiny


def _judge_dropped(trial: Trial, shape: Shape) -> None:
    b, h, _, n_q, n_k, _, _ = shape
    tensors = draw_tensors(trial, shape, _MILD)
    tensors["v"] = _diagonal(trial, shape)
    p = trial.draw(choice(0.25, 0.4, 0.6))
    arguments = {**tensors, **draw_options(trial, shape, _MILD), **_dropped(trial, p)}
    cotangent = draw_cotangent(trial, (b, h, n_q, n_k))
    outcome = trial.call(arguments, wrt=draw_wrt(trial, ATTENTION, arguments), cotangent=cotangent)
    keep = array(outcome.result.value) != 0
    trial.assume(not _underflowed(trial, arguments, keep).any())
    if p ** int(sees(trial, shape, arguments).sum()) < ERROR_RATE:
        said = f"bool(({outcome.name} != 0).any())"
        trial.assert_true(bool(keep.any()), "every weight is dropped", said)
        trial.effective.clear()

    def judge(rate: float) -> None:
        known = {**arguments, "keep": keep, "dropout_p": rate}
        agrees(trial, ATTENTION, arguments, outcome, ATTENTION.exact(trial, known, use_exact_oracle=False))
        gradients_agree(trial, outcome, ATTENTION.exact_gradients(trial, known, cotangent, use_exact_oracle=False))

    under_its_rate(trial, p, judge)


CHECKS = (
    check("attention.dropout_off", _off),
    check("attention.dropout_scale", _scale),
    check("attention.dropout_generator", _generator, effort=0.5),
    check("attention.dropout_rate", _rate, effort=0.5),
    check("attention.dropout_independence", _independence, effort=0.5),
    check("attention.dropout_gradient", _gradient),
    check("attention.dropout_long", _long, effort=0.1, dtypes=("fp64", "fp32", "fp16")),
)
