"""Result of a model computed in one way, as cells that are judged one by one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from veriformer.verify.judging.judge import Floats
from veriformer.verify.judging.outcome import Outcome
from veriformer.verify.operations.models import noise


@dataclass(frozen=True)
class Answer:
    """Result of one way, cell by cell, and its sensitivity to roundoff, which is measured on demand."""

    outcome: Outcome
    cells: list[Floats]
    noise: noise.Spread
    some: np.ndarray | None = None
    times: str = ""

    def row(self, cell: int) -> str:
        """Return the expression of one of its cells in a script."""
        number = cell if self.some is None else int(self.some[cell])
        return f"{self.times}rows_of_result({self.outcome.name})[{number}]"

    def squares(self, runs: int) -> Floats:
        """Return the mean squared deviation of every cell, over so many perturbed runs."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.noise.squares(runs)
        return found if self.some is None else found[self.some]

    def run(self, number: int) -> list[Floats]:
        """Return the cells of one perturbed run."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.noise.run(number)
        return found if self.some is None else [found[i] for i in self.some]

    def part(self, kept: np.ndarray) -> Answer:
        """Return some of its cells."""
        some = np.flatnonzero(kept)
        return Answer(self.outcome, [self.cells[i] for i in some], self.noise, some)


def differences(one: Answer, two: Answer | None, number: int) -> list[Floats]:
    """Return the differences of two answers by cell in one perturbed run; without a second, the first itself."""
    found = one.run(number)
    return found if two is None else [a - b for a, b in zip(found, two.run(number), strict=True)]


def telling_much(one: Answer, two: Answer, bound: Floats) -> bool:
    """Return whether an error as large as the cell would be seen in at least half of the cells.

    Cells of size 0 count only with a bound of 0, by which they must be exactly that.
    """
    sizes = np.asarray([max(np.linalg.norm(a), np.linalg.norm(b)) for a, b in zip(one.cells, two.cells, strict=True)])
    told = (bound < sizes) | (bound == 0)
    return bool(len(told) and told.mean() >= 0.5)


def distance_of(one: Answer, two: Answer) -> Floats:
    """Return the distance of two answers by cell."""
    return np.asarray([np.linalg.norm(a - b) for a, b in zip(one.cells, two.cells, strict=True)])
