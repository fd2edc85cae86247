"""Drawn inputs of an example of a whole model: sizes, tokens, masks, labels and places."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.judging.trial import Trial
from veriformer.verify.operations.models.subject import Subject, subject
from veriformer.verify.strategies import choice, extent, seeds

Given = dict[str, Any]

LONGEST = 64
"""Tokens that every model admits."""

FAINT = 2.0**-7
"""Factor that embeddings may be scaled by: norms then divide by their eps as much as by their input."""


class DrawnInputs:
    """Drawn inputs of one example of a whole model. faint: the scale of the embeddings where it can be set."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.subject: Subject = subject(trial.target, trial.operation)
        self.seed: int = trial.draw(seeds())
        self.rng = np.random.default_rng(self.seed)
        self.B, self.n = trial.draw(choice(2, 1, 3, 4)), trial.draw(extent(5, 3 * LONGEST // 4))
        self.faint: float = trial.draw(choice(1.0, FAINT))
        self.loudness = 1.0

    def tokens(self, B: int | None = None, n: int | None = None) -> torch.Tensor:
        """Draw token ids [B, n]."""
        shape = (B or self.B, n or self.n)
        return torch.from_numpy(self.rng.integers(0, self.subject.vocabulary, shape))

    def other(self, ids: torch.Tensor) -> torch.Tensor:
        """Draw token ids that differ from these everywhere."""
        V = self.subject.vocabulary
        shift = torch.from_numpy(self.rng.integers(1, max(2, V), tuple(ids.shape)))
        return (ids + shift) % V

    def source(self, B: int | None = None) -> Given:
        """Return the source of an encoder–decoder, of another length than the target."""
        ids = self.tokens(B, self.trial.draw(choice(4, 6, 3)))
        return {**self.subject.source(ids)}

    def call_options(self) -> Given:
        """Draw the options of every call: the source, the source of positions, and the scale of the embeddings."""
        positions = {} if self.subject.positions == "mask" else {"positions": self.subject.positions}
        loudness = {} if self.loudness == 1 else {"loudness": self.loudness}
        return {**self.source(), **positions, **loudness}

    def mask(self, side: str, n: int | None = None) -> torch.Tensor:
        """Draw a mask [B, n] of ragged rows, padded on one side; one row is whole, and of several rows one is not."""
        n = n or self.n
        lengths = self.rng.integers(1, n + 1, self.B)
        lengths[int(self.rng.integers(self.B))] = n
        if self.B == 1 or (lengths == n).all():
            lengths[0] = 1 + self.rng.integers(max(1, n // 2))
        place = torch.arange(n)[None]
        kept = torch.from_numpy(lengths)[:, None]
        return (place < kept if side == "right" else place >= n - kept).long()

    def labels(self, ids: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Draw labels with some, but not all, ignored; padding is."""
        labels = self.other(ids)
        ignored = torch.from_numpy(self.rng.random(tuple(ids.shape)) < 0.3)
        if mask is not None:
            ignored |= mask == 0
        labels[ignored] = -100
        labels[int(self.rng.integers(self.B)), -1 if mask is None or mask[:, -1].all() else 0] = 1
        return labels if mask is None else labels.masked_fill(mask == 0, -100)

    def split(self) -> int:
        """Draw the place to cut the row in two."""
        return self.trial.draw(st.integers(1, self.n - 1))

    def splits(self, count: int) -> list[int]:
        """Draw ``count`` cuts of the row, one in each part of it: a late fault shows at a late place alone."""
        edges = np.linspace(1, self.n, count + 1).astype(int)
        return [self.trial.draw(st.integers(int(a), int(b) - 1)) for a, b in pairwise(edges)]
