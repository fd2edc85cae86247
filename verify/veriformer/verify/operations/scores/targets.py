"""Draws shared by the losses: logits with targets, drawn, changed, long and bad, and other forms of the loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.judging.op_info import InvalidCall
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.changes import perturbed
from veriformer.verify.operations.scores import loss_forms
from veriformer.verify.operations.scores.along_axis import loud
from veriformer.verify.strategies import choice, leading_shapes, sizes, values

IGNORE_INDEX = -100
"""The contract's default."""


def options_of(a: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are neither logits nor target."""
    return {key: value for key, value in a.items() if key not in ("logits", "target")}


def loss_by_total(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Return the loss, its logarithm taken of the total."""
    return [loss_forms.loss(xp, a["logits"], a["target"], **options_of(a))]


def loss_vjp_by_chain(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """Return the gradient of the loss by the chain rule."""
    return {"logits": loss_forms.loss_gradient(xp, a["logits"], a["target"], g, **options_of(a))}


def loss_vjp_by_total(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """Return the gradient of the loss with the total kept."""
    return {"logits": loss_forms.loss_gradient(xp, a["logits"], a["target"], g, kept=True, **options_of(a))}


def classes(rng: np.random.Generator, shape: tuple[int, ...], vocabulary: int) -> np.ndarray:
    """Draw class indices of this shape."""
    return rng.integers(0, vocabulary, shape)


def with_ignored(rng: np.random.Generator, target: np.ndarray, ignore_index: int) -> np.ndarray:
    """Return the targets with some ignored, at least one of them not, if any can be counted."""
    ignored = rng.random(target.shape) < rng.choice([0.0, 0.4])
    hidden = np.where(ignored, ignore_index, target)
    return hidden if (hidden != ignore_index).any() else target


def ids(target: np.ndarray) -> torch.Tensor:
    """Return targets as int64, the contract's dtype."""
    return torch.as_tensor(np.asarray(target, dtype=np.int64))


def _drawn_logits(trial: Trial) -> tuple[np.random.Generator, np.ndarray]:
    # Sums over many terms that leave the range of fp16 are what `range` and `long` judge, which draw large calls alone.
    ordinary = trial.dtype_name == "fp16" and trial.large_share > 1
    shape = None if ordinary else trial.rows(number=(1, 2000))
    if shape is None:
        shape = (*trial.draw(leading_shapes(3, 3)), trial.draw(choice(2, 3, 5, 7, 4, 6, 1)))
    kind = trial.draw(values())
    return kind.rng, kind.array(*shape)


def _ignore_index(trial: Trial, vocabulary: int) -> dict[str, int]:
    """Return the default left out, the default given, a class, and numbers that are none."""
    return trial.option("ignore_index", None, IGNORE_INDEX, 0, vocabulary - 1, -1, vocabulary + 3)


def _counted_target(rng: np.random.Generator, lead: tuple[int, ...], vocabulary: int, ignore_index: int) -> np.ndarray:
    target = with_ignored(rng, classes(rng, lead, vocabulary), ignore_index)
    if vocabulary > 1 and not (target != ignore_index).any():
        target = np.where(target == ignore_index, (ignore_index + 1) % vocabulary, target)
    return target


def draw_perplexity(trial: Trial) -> Arguments:
    """Draw logits and class targets, some of them ignored, at least one counted."""
    rng, logits = _drawn_logits(trial)
    vocabulary = logits.shape[-1]
    options = _ignore_index(trial, vocabulary)
    target = _counted_target(rng, logits.shape[:-1], vocabulary, options.get("ignore_index", IGNORE_INDEX))
    trial.assume(bool((target != options.get("ignore_index", IGNORE_INDEX)).any()))
    return {"logits": trial.tensor(logits), "target": ids(target), **options}


def draw_cross_entropy(trial: Trial) -> Arguments:
    """Draw logits with class targets, some ignored, or with probabilities; smoothing and reduction given or omitted."""
    options = trial.option("label_smoothing", None, 0.0, 0.1, 0.375, 1.0)
    options |= trial.option("reduction", None, "none", "sum", "mean")
    if trial.draw(st.integers(0, 3)) < 3 or not trial.supports("probability targets"):
        return {**draw_perplexity(trial), **options}
    rng, logits = _drawn_logits(trial)
    target = torch.as_tensor(probabilities(rng, logits.shape))
    dtype = trial.draw(choice(trial.dtype, trial.dtype, torch.float32, torch.float64))
    return {"logits": trial.tensor(logits), "target": target.to(dtype), **options}


def probabilities(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draw rows of entries in [0, 1], some of them zero; the rows need not sum to 1."""
    t = rng.random(shape) * (rng.random(shape) < 0.8)
    return t / max(1.0, float(t.sum(-1).max())) if rng.random() < 0.5 else t


def ordinary_rows(trial: Trial) -> Arguments:
    """Draw Gaussian logits with class targets."""
    lead = trial.draw(leading_shapes())
    vocabulary = trial.draw(sizes(2))
    kind = trial.draw(values(("gaussian",)))
    return {"logits": trial.tensor(kind.array(*lead, vocabulary)), "target": ids(classes(kind.rng, lead, vocabulary))}


def changed_targets(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    """Draw a call, and the same with one of the arguments changed that all losses have."""
    n, vocabulary = trial.draw(sizes(2)), trial.draw(sizes(3))
    kind = trial.draw(values(("gaussian", "offset", "one-signed")))
    a: Arguments = {"logits": trial.tensor(kind.array(n, vocabulary)), "target": ids(np.arange(n) % vocabulary)}
    return a, {
        "logits": {**a, "logits": perturbed(trial, a["logits"], kind.rng)},
        "target": {**a, "target": (a["target"] + 1) % vocabulary},
        "ignore_index": {**a, "ignore_index": 0},
    }


def long_rows(trial: Trial) -> Arguments:
    """Draw a vocabulary of any size and any number of tokens, some of them ignored; in every other call by default."""
    if trial.draw(choice(False, True)):
        a = draw_perplexity(trial)
        return {**a, "logits": loud(trial, a["logits"])}
    rng, logits = _drawn_logits(trial)
    target = with_ignored(rng, classes(rng, logits.shape[:-1], logits.shape[-1]), IGNORE_INDEX)
    return {"logits": loud(trial, trial.tensor(logits)), "target": ids(target)}


def bad_targets(trial: Trial, good: Arguments) -> Iterator[InvalidCall]:
    """Yield class targets and logits that every loss refuses, beyond what their letters say."""
    logits, target = (name for name in good if isinstance(good[name], torch.Tensor))
    ignored = good[target].clone()
    ignored.view(-1)[-1:] = IGNORE_INDEX
    if ignored.numel():
        other = {**good, target: ignored, "ignore_index": 0}
        yield InvalidCall("the default's index beside another", other, (target,))
    yield InvalidCall("too many axes", {**good, target: good[target][..., None]}, (target, logits))
    yield InvalidCall("no classes", {**good, logits: good[logits][..., :0]}, (logits, target))
