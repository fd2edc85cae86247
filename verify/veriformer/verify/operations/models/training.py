"""Laws of whole models in training: the loss, its gradient, checkpoints, and attention backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from veriformer.verify.contract import dtypes
from veriformer.verify.laws.family import check
from veriformer.verify.operations.models import applies
from veriformer.verify.operations.models.agreement import EFFORT, ModelExample, model_property
from veriformer.verify.operations.models.answer import Answer, distance_of
from veriformer.verify.operations.models.applies import always
from veriformer.verify.strategies import choice
from veriformer.verify.targets.kinds import MODELS

STEP = 2.0**-13
"""Minimum distance of slopes, relative to the parameters: any step is right; of a larger one less is seen, of a smaller
one more is lost to rounding. With a roundoff u of the model's own the two errors, of the order of h² and u/h, are
balanced by h of the order of u^(1/3); as h is granted in the place of h², by less: u^(2/3)."""


PLAINLY = 1.0
"""Scale of embeddings where gradients are taken: those of faint ones are so steep that a step crosses choices."""

DIRECTIONS = 3
"""Along so many of them a gradient has to be wrong: two kinks that undo each other, or a jump as where a token changes
its expert, can lie in the way of one."""


def _packing(e: ModelExample) -> None:
    e.B = 1
    lengths = [int(x) for x in e.rng.integers(1, 16, e.trial.draw(choice(2, 3)))]
    e.n = sum(lengths)
    asked = e.call_options()
    e.assert_not_constant(**asked)
    ids = e.tokens()
    one, two = (e.answer(way, ids=ids, lengths=lengths, **asked) for way in ("packed", "one_by_one"))
    e.agree(one, two, f"logits of documents of {lengths} tokens in one row")
    number = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))[None]
    mine = number == int(e.rng.integers(len(lengths)))
    e.unseen(ids, ~mine, mine, "logits of one document among others in a row", lengths=lengths, **asked)


def _saved(e: ModelExample) -> None:
    asked = e.call_options()
    e.assert_not_constant(**asked)
    before, after = (e.ask("ties", loaded=loaded) for loaded in (False, True))
    kept = bool((after.value >= before.value).all())
    message = "parameters that were one tensor are several after the saved state was loaded"
    e.trial.assert_true(kept, message, f"bool(({after.name} >= {before.name}).all())")
    ids = e.tokens()
    plain, outcome = e.answer("whole", ids=ids, **asked), e.ask("reloaded", ids=ids, **asked)
    loaded = Answer(outcome, e.finite(outcome), plain.noise)  # a moved copy could tell of no other instance
    e.agree(loaded, plain, "logits of an instance that loaded the saved state")


def _slope(e: ModelExample) -> None:
    """Check that the difference quotient of the loss between two places is the mean of its derivative.

    By the trapezoidal rule that is off by at most half of what the slope changes by in each part, were it monotone
    there; twice that is granted. Kinks, such as ReLU has, change the slope and so are granted too.
    """
    e.loudness = PLAINLY
    asked = e.call_options()
    e.assert_not_constant(**asked)
    e.n = min(e.n, 9)
    ids, asked = e.tokens(), e.call_options()
    given = {"ids": ids, "labels": e.labels(ids), "step": max(STEP, e.subject.eps ** (2 / 3)), **asked}
    for turn in range(DIRECTIONS):
        given["seed"] = (e.seed + turn) % 2**31
        places = e.finite(e.ask("slopes", **given))
        change = float(np.abs(np.diff(np.concatenate(places))).mean())
        mean, secant = e.answer("mean_slope", **given), e.answer("secant", **given)
        bound = e.bound(mean, secant, change)
        if (distance_of(mean, secant) <= bound).all():
            break
    e.within(mean, secant, bound, "slope of the loss")


def _accumulation(e: ModelExample) -> None:
    e.loudness = PLAINLY
    e.assert_not_constant(**e.call_options())
    e.B = max(2, e.B)
    e.n = max(3, min(e.n, 9))
    ids, mask, asked = e.tokens(), e.mask("right"), e.call_options()
    given = {"ids": ids, "mask": mask, "labels": e.labels(ids, mask), **asked}
    one, two = (e.answer(way, **given) for way in ("gradient_at_once", "gradient_in_parts"))
    e.agree(one, two, "gradient of a padded batch")


def _loss(e: ModelExample) -> None:
    asked = e.call_options()
    e.assert_not_constant(**asked)
    ids = e.tokens()
    labels = e.labels(ids)
    labels[0, -1], labels[-1, -2] = 1, 0
    given = {"ids": ids, "labels": labels, **asked}
    shift = e.trial.operation == "causal_lm"
    one, two = e.answer("reported_loss", **given), e.answer("computed_loss", shift=shift, **given)
    e.agree(one, two, "loss for labels")


def _backends(e: ModelExample) -> None:
    """Compare backends with padding and without, which are separate kernels in most implementations."""
    e.assert_not_constant(**e.call_options())
    ids, asked = e.tokens(), e.call_options()
    masks: list[dict[str, Any]] = [{}, {"mask": e.mask("right")}] if e.subject.masked else [{}]
    first, *others = e.subject.backends
    for masked in masks:
        one = e.answer("with_backend", ids=ids, backend=first, **masked, **asked)
        for name in others:
            two = e.answer("with_backend", ids=ids, backend=name, **masked, **asked)
            e.agree(two, one, f"logits with {name} and with {first}")


def _checkpointing(e: ModelExample) -> None:
    e.loudness = PLAINLY
    asked = e.call_options()
    e.assert_not_constant(**asked)
    e.n = min(e.n, 9)
    ids, asked = e.tokens(), e.call_options()
    given = {"ids": ids, "labels": e.labels(ids), "seed": e.seed % 2**31, **asked}
    one, two = (e.answer("trained", checkpointing=on, **given) for on in (True, False))
    e.agree(one, two, "gradient with checkpointing")


def _half_loss(e: ModelExample) -> None:
    """A half may give losses as far off as fp64 does with errors of the half's last place."""
    e.loudness = PLAINLY
    asked = e.call_options()
    e.assert_not_constant(**asked)
    ids = e.tokens()
    given = {"ids": ids, "labels": e.labels(ids), **asked}
    coarse = torch.finfo(dtypes.TORCH[e.trial.dtype_name]).eps
    wide = e.answer("losses", coarse=coarse, **given)
    outcome = e.ask("losses", dtype=dtypes.TORCH[e.trial.dtype_name], **given)
    half = Answer(outcome, e.finite(outcome), wide.noise)
    e.agree(half, wide, f"loss in {e.trial.dtype_name}")


_ROWS: tuple[tuple[str, Callable[[ModelExample], None], dict[str, Any]], ...] = (
    ("packing", _packing, {"applies": applies.has_documents}),
    ("saved", _saved, {}),
    ("slope", _slope, {"applies": applies.is_trainable}),
    ("accumulation", _accumulation, {"applies": applies.is_trainable_and_has_mask}),
    ("loss", _loss, {"applies": applies.has_labels}),
    ("backends", _backends, {"applies": applies.has_backends}),
    ("checkpointing", _checkpointing, {"applies": applies.has_checkpointing}),
    ("half_loss", _half_loss, {"dtypes": ("bf16",), "applies": None}),
)


CHECKS = tuple(
    check(
        f"{operation}.{name}",
        model_property(body),
        **{"dtypes": ("fp64", "fp32"), "effort": EFFORT, "applies": always, **options},
    )
    for operation in MODELS
    for name, body, options in _ROWS
    if (operation, name) != ("seq2seq_lm", "packing")
)
