"""Whole models in training: the loss, its gradient, what is saved, and the ways of computing attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from veriformer.verify.contract import dtypes
from veriformer.verify.laws.family import check
from veriformer.verify.operations.models import applies, noise
from veriformer.verify.operations.models.agreement import EFFORT, Answer, Examination, examined
from veriformer.verify.operations.models.applies import always
from veriformer.verify.strategies import choice
from veriformer.verify.targets.model_kinds import OPERATIONS

STEP = 2.0**-13
"""How far apart, relative to the parameters, slopes are taken: any step is right; of a larger one less is seen, of a
smaller one more is lost to rounding."""


DIRECTIONS = 3
"""Along so many of them a gradient has to be wrong: two kinks that undo each other, or a jump as where a token changes
its expert, can lie in the way of one."""


HALF_RUNS = 16
"""Perturbed runs where the noise is as large as what is to be seen above it."""


def _packing(e: Examination) -> None:
    e.B = 1
    lengths = [int(x) for x in e.rng.integers(1, 5, e.trial.draw(choice(2, 3)))]
    e.n = sum(lengths)
    asked = e.asked()
    e.live(**asked)
    ids = e.tokens()
    one, two = (e.answer(way, ids=ids, lengths=lengths, **asked) for way in ("packed", "one_by_one"))
    e.agree(one, two, f"logits of documents of {lengths} tokens in one row")


def _saved(e: Examination) -> None:
    asked = e.asked()
    e.live(**asked)
    before, after = (e.ask("ties", loaded=loaded) for loaded in (False, True))
    kept = bool((after.value >= before.value).all())
    message = "parameters that were one tensor are several after the saved state was loaded"
    e.trial.require(kept, message, f"bool(({after.name} >= {before.name}).all())")
    ids = e.tokens()
    plain, outcome = e.answer("whole", ids=ids, **asked), e.ask("reloaded", ids=ids, **asked)
    loaded = Answer(outcome, e.finite(outcome), lambda: plain.squares)  # a moved copy could tell of no other instance
    e.agree(loaded, plain, "logits of an instance that loaded the saved state")


def _slope(e: Examination) -> None:
    """What the loss gains between two places is the mean of its slope.

    By the trapezoidal rule that is off by at most half of what the slope changes by in each part, were it monotone
    there; twice that is granted. Kinks, such as ReLU has, change the slope and so are granted too.
    """
    asked = e.asked()
    e.live(**asked)
    e.n = min(e.n, 9)
    ids, asked = e.tokens(), e.asked()
    given = {"ids": ids, "labels": e.labels(ids), "step": STEP, **asked}
    for turn in range(DIRECTIONS):
        given["seed"] = (e.seed + turn) % 2**31
        places = e.finite(e.ask("slopes", **given))
        change = float(np.abs(np.diff(np.concatenate(places))).mean())
        mean, secant = e.answer("mean_slope", **given), e.answer("secant", **given)
        if e.agreed(mean, secant, more=change):
            break
    e.agree(mean, secant, "slope of the loss", more=change)


def _accumulation(e: Examination) -> None:
    e.live(**e.asked())
    e.B = max(2, e.B)
    e.n = max(3, min(e.n, 9))
    ids, mask, asked = e.tokens(), e.mask("right"), e.asked()
    given = {"ids": ids, "mask": mask, "labels": e.labels(ids, mask), **asked}
    one, two = (e.answer(way, **given) for way in ("gradient_at_once", "gradient_in_parts"))
    e.agree(one, two, "gradient of a padded batch")


def _loss(e: Examination) -> None:
    asked = e.asked()
    e.live(**asked)
    ids = e.tokens()
    labels = e.labels(ids)
    labels[0, -1], labels[-1, -2] = 1, 0
    given = {"ids": ids, "labels": labels, **asked}
    shift = e.trial.operation == "causal_lm"
    one, two = e.answer("reported_loss", **given), e.answer("computed_loss", shift=shift, **given)
    e.agree(one, two, "loss for labels")


def _backends(e: Examination) -> None:
    """With padding and without, which are kernels of their own in most implementations."""
    e.live(**e.asked())
    ids, asked = e.tokens(), e.asked()
    masks: list[dict[str, Any]] = [{}, {"mask": e.mask("right")}] if e.subject.masked else [{}]
    first, *others = e.subject.backends
    for masked in masks:
        one = e.answer("with_backend", ids=ids, backend=first, **masked, **asked)
        for name in others:
            two = e.answer("with_backend", ids=ids, backend=name, **masked, **asked)
            e.agree(two, one, f"logits with {name} and with {first}")


def _checkpointing(e: Examination) -> None:
    asked = e.asked()
    e.live(**asked)
    e.n = min(e.n, 9)
    ids, asked = e.tokens(), e.asked()
    given = {"ids": ids, "labels": e.labels(ids), "seed": e.seed % 2**31, **asked}
    one, two = (e.answer("trained", checkpointing=on, **given) for on in (True, False))
    e.agree(one, two, "gradient with checkpointing")


def _half_loss(e: Examination) -> None:
    """fp64 with errors of a half's last place is what a half may give; the factor is that of more runs."""
    asked = e.asked()
    e.live(**asked)
    ids = e.tokens()
    given = {"ids": ids, "labels": e.labels(ids), **asked}
    coarse = torch.finfo(dtypes.TORCH[e.trial.dtype_name]).eps
    wide = e.answer("losses", runs=HALF_RUNS, coarse=coarse, **given)
    outcome = e.ask("losses", dtype=dtypes.TORCH[e.trial.dtype_name], **given)
    half = Answer(outcome, e.finite(outcome), lambda: wide.squares)
    bound = noise.factor(HALF_RUNS, len(half.cells)) * np.sqrt(2 * wide.squares)
    e.within(half, wide, bound, f"loss in {e.trial.dtype_name}")


_ROWS: tuple[tuple[str, Callable[[Examination], None], dict[str, Any]], ...] = (
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
        examined(body),
        **{"dtypes": ("fp64", "fp32"), "effort": EFFORT, "applies": always, **options},
    )
    for operation in OPERATIONS
    for name, body, options in _ROWS
    if (operation, name) != ("seq2seq_lm", "packing")
)
