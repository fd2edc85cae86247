"""Laws shared by the losses."""

from __future__ import annotations

import itertools

import numpy as np
import torch

from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.scores.along_axis import few_rows
from veriformer.verify.operations.scores.targets import classes, ids
from veriformer.verify.strategies import values


def draw_rows(trial: Trial, least: int = 1) -> tuple[np.random.Generator, Arguments]:
    """Draw rows of logits with class targets, and a generator for more."""
    n, vocabulary = few_rows(trial, least, small=trial.dtype_name == "fp16")  # as in targets.py
    kind = trial.draw(values())
    target = classes(kind.rng, (n,), vocabulary)
    return kind.rng, {"logits": trial.tensor(kind.array(n, vocabulary)), "target": ids(target)}


def interpolated(plain: torch.Tensor, uniform: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
    """Return (1 − α) of one and α of the other in float64."""
    return (1 - alpha) * plain.double() + alpha * uniform.double()


def pieces(rng: np.random.Generator, n: int) -> list[slice]:
    """Split n rows into two or three runs at random, some possibly empty."""
    cuts = np.sort(rng.integers(0, n + 1, rng.integers(1, 3)))
    return [slice(low, high) for low, high in itertools.pairwise([0, *(int(cut) for cut in cuts), n])]
