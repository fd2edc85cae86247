"""Small changes of tensors, to see that they matter."""

from __future__ import annotations

import numpy as np
import torch

from veriformer.verify.trial import Trial


def nudged(trial: Trial, x: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """The same numbers but for one, which moves by more than rounding explains."""
    changed = x.clone()
    if changed.numel():
        place = np.unravel_index(int(rng.integers(changed.numel())), tuple(changed.shape))
        old = float(changed[place]) if changed[place].isfinite() else 0.0
        changed[place] = float(trial.tensor(-old - 1.5 if old > 0 else 1.5 - old))
    return changed
