"""The feed-forward network with its dropout: its record and its laws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from veriformer.spec.layers.feed_forward import feed_forward, feed_forward_vjp
from veriformer.verify.judging.arguments import array
from veriformer.verify.judging.op_info import InvalidCall, OpInfo
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees, gradients_agree
from veriformer.verify.laws.chance import agreement, kept_share, share
from veriformer.verify.laws.equality import constant
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import draw_cotangent
from veriformer.verify.operations.layers.two_layer_laws import laws_of_two_layers
from veriformer.verify.operations.layers.two_layers import (
    WEIGHTS,
    bad_network,
    bias_in_the_sum,
    bias_in_the_sum_vjp,
    bulk_of,
    changes_of,
    draw_mlp,
    network,
    one_row,
    options_of,
    ordinary_of,
    tensors_of,
    work,
)
from veriformer.verify.scripts.script import Seed
from veriformer.verify.strategies import choice, seeds


def _dropped(a: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the formula, with the mask of dropout where a check knows it."""
    return options_of(a, "activation", *(("dropout_p", "keep") if "keep" in a else ()))


def _feed_forward(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [feed_forward(xp, *tensors_of(a, WEIGHTS), **_dropped(a))]


def _feed_forward_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return dict(zip(("x", *WEIGHTS), feed_forward_vjp(xp, *[*tensors_of(a, WEIGHTS), g], **_dropped(a)), strict=True))


def draw_feed_forward(trial: Trial) -> Arguments:
    """Draw a call, with a probability of dropout, which has no effect without training."""
    off = trial.option("dropout_p", 0.4, None, 0.0, 0.9)
    quiet = trial.option("training", None, *((True, False) if off.get("dropout_p") == 0.0 else (False,)))
    return {**draw_mlp(trial), **off, **quiet, **trial.option("generator", None, Seed(trial.draw(seeds())))}


def _bad_feed_forward(trial: Trial) -> Iterator[InvalidCall]:
    yield from bad_network(trial)
    a = network(trial, (2,), 3, 5, 4)
    for p in (-0.1, 1.1, True):
        yield InvalidCall(f"a probability of {p}", {**a, "dropout_p": p}, ("dropout_p",))
    yield InvalidCall("a probability above 1 in training", {**a, "dropout_p": 1.5, "training": True}, ("dropout_p",))
    yield InvalidCall("a number for a generator", {**a, "generator": 3}, ("generator",))


FEED_FORWARD = OpInfo(
    name="feed_forward",
    sample=draw_feed_forward,
    sample_basic=ordinary_of(network),
    formulas=(_feed_forward, bias_in_the_sum("gelu")),
    vjps=(_feed_forward_vjp, bias_in_the_sum_vjp("gelu")),
    inputs=("x", *WEIGHTS),
    invalid_calls=_bad_feed_forward,
    batch_slice=lambda trial: one_row(trial, draw_feed_forward),
    argument_perturbations=lambda trial: changes_of(trial, network, ("x", *WEIGHTS)),
    sample_accuracy=bulk_of(network),
    sample_large=draw_feed_forward,
    use_exact_oracle=False,
    structural_dtypes=("fp32", "bf16"),
)


def _of_dropout(trial: Trial) -> tuple[tuple[int, ...], int, int]:
    """Return the leading shape of the rows, their width and that of the hidden layer and the output."""
    large = trial.sizes({"rows": (50, 500), "d": (3, 200), "f": (8, 300)}, lambda s: work({**s, "o": s["f"]}))
    if large is not None:
        return trial.axes(large["rows"]), large["d"], large["f"]
    return trial.draw(choice((50,), (2, 25), (3, 2, 9))), 3, trial.draw(choice(8, 12))


def _dropout(trial: Trial) -> None:
    """Check dropout: a diagonal output layer shows the mask; a call of equal shapes and state is judged with it."""
    p = trial.draw(choice(0.4, 1.0, 0.25, 0.7))
    lead, d, f = _of_dropout(trial)
    a: dict[str, Any] = network(trial, lead, d, f, f)
    a |= {"b1": a["b1"] + 8.0, "x": a["x"] / (3.0 * d)}
    options = {"dropout_p": p, "training": True, "generator": Seed(trial.draw(seeds()))}
    options |= trial.option("activation", None, "sigmoid", "tanh")
    diagonal = {"w2": torch.eye(f, dtype=trial.dtype), "b2": torch.zeros_like(a["b2"])}
    shown = trial.call({**a, **diagonal, **options}).result
    keep = array(shown.value) != 0
    trial.assert_true(
        p < 1 or not keep.any(), "p = 1 keeps a hidden value", f"not bool(({shown.expression} != 0).any())"
    )
    if p < 1:
        trial.assert_within_bound(
            trial.observe(kept_share, shown), share(keep.size, 1.0 - p), f"hidden values kept with p = {p}"
        )
        for axis, size in ((axis, size) for axis, size in enumerate(keep.shape) if size > 1):
            alike = trial.observe(agreement, shown, constant(torch.tensor([axis, 1])))
            law = share(size // 2 * (keep.size // size), p * p + (1 - p) * (1 - p))
            trial.assert_within_bound(alike, law, f"share of neighbours along axis {axis} that fare alike with p = {p}")
    known = {**a, **options, "keep": keep}
    cotangent = draw_cotangent(trial, (*lead, f))
    outcome = trial.call({**a, **options}, wrt=("x", *WEIGHTS), cotangent=cotangent)
    agrees(trial, FEED_FORWARD, known, outcome, FEED_FORWARD.exact(trial, known, use_exact_oracle=False))
    gradients_agree(trial, outcome, FEED_FORWARD.exact_gradients(trial, known, cotangent, use_exact_oracle=False))


CHECKS = (
    *laws_of_two_layers(FEED_FORWARD),
    check("feed_forward.dropout", _dropout, dtypes=("fp64", "fp32", "bf16"), effort=0.5),
)
