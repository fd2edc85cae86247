"""Language models small enough to be written down: a row of log-probabilities for every text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class TabularLM:
    """A function of ids [b, t] to log-probabilities [b, V]: by the whole text, ``otherwise`` where it has no row."""

    rows: Mapping[tuple[int, ...], tuple[float, ...]]
    otherwise: tuple[float, ...]
    dtype: torch.dtype

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the rows of these texts."""
        rows = [self.row(tuple(text)) for text in ids.tolist()]
        return torch.tensor(rows, dtype=self.dtype, device=ids.device)

    def row(self, text: tuple[int, ...]) -> tuple[float, ...]:
        """Return the log-probabilities of the tokens after a text."""
        return self.rows.get(text, self.otherwise)

    def source(self) -> str:
        """Return a Python expression that makes an equal function, with torch alone."""
        texts = f"[rows.get(tuple(text), {self.otherwise!r}) for text in ids.tolist()]"
        made = f"lambda rows: lambda ids: torch.tensor({texts}, dtype={self.dtype}, device=ids.device)"
        return f"({made})({dict(self.rows)!r})"
