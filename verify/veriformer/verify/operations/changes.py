"""Tensors of one call together, and small changes of them, to see that they matter."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from veriformer.verify.judging.trial import Trial
from veriformer.verify.strategies import Values, values

MILD = ("integers", "gaussian", "ties", "one-signed", "duplicates", "sparse", "small")


def perturbed(trial: Trial, x: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Return x with one entry changed by more than rounding explains."""
    changed = x.clone()
    if changed.numel():
        place = np.unravel_index(int(rng.integers(changed.numel())), tuple(changed.shape))
        old = float(changed[place]) if changed[place].isfinite() else 0.0
        changed[place] = float(trial.tensor(-old - 1.5 if old > 0 else 1.5 - old))
    return changed


def several(trial: Trial, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, torch.Tensor]:
    """Draw tensors of these shapes: the first of one kind, the others of another, each with a seed of its own."""
    first, others = trial.draw(values(MILD)), trial.draw(values(MILD))
    kinds = [first, *(Values(others.kind, (others.seed + i) % 2**32) for i in range(1, len(shapes)))]
    return {name: trial.tensor(kind.array(*shape)) for (name, shape), kind in zip(shapes.items(), kinds, strict=True)}
