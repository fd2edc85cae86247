"""Attention, one option at a time: result and gradients where that option, and little else, decides."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import torch

from veriformer.spec.arithmetic import FORMATS
from veriformer.verify.contract import dtypes
from veriformer.verify.judging.arguments import array
from veriformer.verify.judging.arithmetic import over_float64
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import draw_cotangent, judge_with_gradients
from veriformer.verify.laws.untouched import assert_pure
from veriformer.verify.operations.attention.attention.draws import (
    Shape,
    draw_bias,
    draw_causal,
    draw_mask,
    draw_options,
    draw_shape,
    draw_tensors,
    every_row_sees,
    large_shape,
)
from veriformer.verify.operations.attention.attention.record import ATTENTION
from veriformer.verify.strategies import axes_of_scores, choice, extent, sizes

_KINDS = ("integers", "gaussian", "one-signed", "peaked", "duplicates", "offset")


def _judge(trial: Trial, arguments: Arguments) -> None:
    judge_with_gradients(trial, ATTENTION, arguments)


def _scale(trial: Trial) -> None:
    shape = draw_shape(trial)
    scale = trial.draw(choice(1.0, 0.0, -0.5, 2.5, 0.125, -3.0))
    causal = draw_causal(trial, shape)
    mask = draw_mask(trial, shape, causal, trial.draw(choice(None, (True, True))))
    _judge(trial, {**draw_tensors(trial, shape, _KINDS), **causal, **mask, "scale": scale})


def _softcap(trial: Trial) -> None:
    shape = draw_shape(trial)
    tensors = draw_tensors(trial, shape, ("gaussian", "one-signed", "integers"))
    softcap = trial.draw(choice(1.0, 0.25, 5.0, 50.0))
    scale = trial.draw(choice(None, 2.0, -1.0))
    causal = draw_causal(trial, shape)
    _judge(trial, {**tensors, **causal, "softcap": softcap, **({} if scale is None else {"scale": scale})})


def draw_grouped(trial: Trial) -> Shape:
    """Draw more than one group, and more heads than groups."""
    large = large_shape(trial, groups=(2, 16), repeats=(2, 8))
    if large is not None:
        return large
    b, groups, repeats = trial.draw(sizes(1, 2)), trial.draw(sizes(2, 3)), trial.draw(sizes(2, 3))
    n_q, n_k, d_k, d_v = (trial.draw(sizes(2, 4)) for _ in range(4))
    return b, groups * repeats, groups, n_q, n_k, d_k, d_v


def _grouped_heads(trial: Trial) -> None:
    shape = draw_grouped(trial)
    _judge(trial, {**draw_tensors(trial, shape, ("gaussian", "offset", "one-signed")), **draw_options(trial, shape)})


def _widths(trial: Trial) -> None:
    b, h, groups, n_q, n_k, d_k, d_v = draw_shape(trial)
    d_v = trial.draw(choice(*(d for d in range(1, 7) if d != d_k))) if d_v == d_k else d_v
    shape = (b, h, groups, n_q, n_k, d_k, d_v)
    _judge(trial, {**draw_tensors(trial, shape, _KINDS), **draw_causal(trial, shape)})


def draw_several(trial: Trial) -> Shape:
    """Draw batch, heads and lengths above 1, no two equal, so that no axis can be confused with another."""
    large = large_shape(trial, batch=(2, 24), groups=(1, 12), repeats=(1, 6))
    if large is not None:
        b, h, groups, n_q, n_k, d_k, d_v = large
        n_q, n_k = n_q + (n_q == n_k), n_k + (n_k in (b, h, 1))
        return b, h + groups * (h == b), groups, n_q, n_k, d_k, d_v
    b, groups, repeats = trial.draw(choice((2, 3, 1), (3, 2, 1), (2, 1, 3), (3, 2, 2), (2, 3, 2)))
    n_q, n_k = trial.draw(choice((4, 5), (5, 4), (1, 5), (5, 7), (7, 5)))
    return b, groups * repeats, groups, n_q, n_k, trial.draw(sizes(2, 4)), trial.draw(sizes(1, 3))


def _mask(trial: Trial) -> None:
    shape = draw_several(trial)
    tensors = draw_tensors(trial, shape, _KINDS)
    allowed = {"is_causal": True} if every_row_sees(trial, shape, {"is_causal": True}) else {}
    causal = allowed if trial.draw(st.booleans()) else {}
    arguments = {**tensors, **causal, **draw_mask(trial, shape, causal, trial.draw(axes_of_scores()))}
    _judge(trial, arguments)
    assert_pure(trial, {**arguments, **allowed, "mask": _whole(shape, arguments["mask"])})


def _whole(shape: Shape, x: torch.Tensor) -> torch.Tensor:
    """Return a mask or bias with every axis full: into no other may causality and the like be written as they stand."""
    b, h, _, n_q, n_k, _, _ = shape
    return x.expand(b, h, n_q, n_k).contiguous()


def _padding(trial: Trial) -> None:
    """Check a mask [B, 1, 1, n_k] that hides the first or the last keys of each batch element, causal or not."""
    shape = draw_several(trial)
    b, _, _, _, n_k, _, _ = shape
    whole = trial.draw(choice(False, False, True))  # the first element, as the longest text of a sorted batch is
    lengths = torch.tensor([n_k if whole and i == 0 else trial.draw(sizes(1, n_k)) for i in range(b)])
    lengths = lengths[:, None, None, None]
    j = torch.arange(n_k)
    left = trial.draw(st.booleans())
    mask = j >= n_k - lengths if left else j < lengths
    options: dict[str, Any] = {"mask": mask}
    causal = {**options, "is_causal": True}
    if trial.draw(st.booleans()) and every_row_sees(trial, shape, causal):
        options = causal
    _judge(trial, {**draw_tensors(trial, shape, _KINDS), **options})


def _packing(trial: Trial) -> None:
    """Check several documents in one row: each query sees the keys of its own document, causally or not."""
    b, h, groups, _, _, d_k, d_v = draw_several(trial)
    n = trial.draw(sizes(2, 7))
    document = torch.tensor([[trial.draw(st.integers(0, 1)) for _ in range(n)] for _ in range(b)]).cumsum(-1)
    mask = (document[:, :, None] == document[:, None, :])[:, None]
    options: dict[str, Any] = {"mask": mask, **({"is_causal": True} if trial.draw(st.booleans()) else {})}
    arguments = {**draw_tensors(trial, (b, h, groups, n, n, d_k, d_v), _KINDS), **options}
    _judge(trial, arguments)
    assert_pure(trial, arguments)


def _bias(trial: Trial) -> None:
    shape = draw_several(trial)
    tensors = draw_tensors(trial, shape, _KINDS)
    allowed = {"is_causal": True} if every_row_sees(trial, shape, {"is_causal": True}) else {}
    causal = allowed if trial.draw(st.booleans()) else {}
    softcap = trial.option("softcap", None, 1.5)
    scale = trial.option("scale", None, 0.25)
    bias = draw_bias(trial, shape, causal, trial.draw(axes_of_scores()), ("gaussian", "offset", "peaked", "one-signed"))
    arguments = {**tensors, **causal, **softcap, **scale, **bias}
    _judge(trial, arguments)
    assert_pure(trial, {**arguments, **allowed, "bias": _whole(shape, bias["bias"])})


def _bias_dtype(trial: Trial) -> None:
    """Check a bias of another dtype than the scores; its gradient has the bias' dtype."""
    shape = draw_several(trial)
    tensors = draw_tensors(trial, shape, ("gaussian", "one-signed", "integers"))
    bias = draw_bias(trial, shape, {}, trial.draw(axes_of_scores()), ("gaussian", "integers", "one-signed"))["bias"]
    other = trial.draw(choice(*dtypes.NAMES))
    arguments = {**tensors, "bias": bias.to(dtypes.TORCH[other])}
    coarse = over_float64(max(other, trial.dtype_name, key=lambda name: FORMATS[name].unit_roundoff))
    references = ATTENTION.exact(trial, arguments, use_exact_oracle=False)
    cotangent = draw_cotangent(trial, references[0].exact.shape)
    outcome = trial.call(arguments, wrt=("bias",), cotangent=cotangent)
    agrees(trial, ATTENTION, arguments, outcome, references)
    lifted = ATTENTION.lift(trial, arguments, coarse)
    gradient = ATTENTION.vjps[0](coarse, lifted, coarse.asarray(array(cotangent)))["bias"]
    trial.assert_within_bound(outcome.gradient("bias"), Reference(*coarse.judgeable(gradient)), "gradient of bias")


def _window(trial: Trial) -> None:
    """Check windows at, just below and just above the lengths, with a prefix of keys before the queries or none."""
    b, h, groups, n_q, n_k, d_k, d_v = draw_shape(trial)
    window = max(1, n_k - trial.draw(choice(1, 0, -1, 2, 4)))
    if trial.draw(choice(False, False, True)):
        window = trial.draw(extent(1, n_k))
    n_q = min(n_q, n_k) if n_k > 8 else max(1, n_k - trial.draw(choice(0, 1, 2, 3)))
    shape = (b, h, groups, n_q, n_k, d_k, d_v)
    options = {"is_causal": True, "window": window}
    trial.assume(every_row_sees(trial, shape, options))
    _judge(trial, {**draw_tensors(trial, shape, _KINDS), **options})


def _alignment(trial: Trial) -> None:
    """Check causality with more keys than queries, or, where no query is then without a key, fewer."""
    b, h, groups, n_q, n_k, d_k, d_v = draw_shape(trial)
    if n_q == n_k or max(n_q, n_k) < 3:
        n_q, n_k = trial.draw(choice((1, 4), (2, 3), (2, 5), (3, 7), (4, 5), (5, 3)))
    shape = (b, h, groups, n_q, n_k, d_k, d_v)
    options: dict[str, Any] = {"is_causal": True}
    if not every_row_sees(trial, shape, options):
        shape = (b, h, groups, n_k, n_q, d_k, d_v)
    _judge(trial, {**draw_tensors(trial, shape, _KINDS), **options})


_BODIES: dict[str, Any] = {
    "scale": _scale,
    "softcap": _softcap,
    "grouped_heads": _grouped_heads,
    "widths": _widths,
    "mask": _mask,
    "padding": _padding,
    "packing": _packing,
    "bias": _bias,
    "bias_dtype": _bias_dtype,
    "window": _window,
}


CHECKS = (
    *(check(f"attention.{name}", body) for name, body in _BODIES.items()),
    check("attention.alignment", _alignment, convention="causal.alignment"),
)
