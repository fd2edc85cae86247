"""The feed-forward network with its dropout: its record and its laws."""

from __future__ import annotations

from typing import Any

import torch

from veriformer.spec.operations import OPERATIONS
from veriformer.verify.judging.arguments import array
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees, gradients_agree
from veriformer.verify.laws.chance import agreement, kept_share, share
from veriformer.verify.laws.equality import constant
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import draw_cotangent
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.drawing import draw_call
from veriformer.verify.operations.layers.two_layer_laws import laws_of_two_layers
from veriformer.verify.operations.layers.two_layers import (
    WEIGHTS,
    bias_in_the_sum,
    bias_in_the_sum_vjp,
    network,
    work,
)
from veriformer.verify.scripts.script import Seed
from veriformer.verify.strategies import choice, seeds


def draw_feed_forward(trial: Trial) -> Arguments:
    """Draw a call, with a probability of dropout, which has no effect without training."""
    off = trial.option("dropout_p", 0.4, None, 0.0, 0.9)
    quiet = trial.option("training", None, *((True, False) if off.get("dropout_p") == 0.0 else (False,)))
    call = draw_call(OPERATIONS["feed_forward"], trial)
    return {**call, **off, **quiet, **trial.option("generator", None, Seed(trial.draw(seeds())))}


FEED_FORWARD = operation(
    "feed_forward",
    sample=draw_feed_forward,
    also=(bias_in_the_sum("gelu"),),
    also_gradients=(bias_in_the_sum_vjp("gelu"),),
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
