"""The order in which rows are seen: a function of a seed and a position, so that a run can go on where it stopped."""

import torch

from veriformer.impl import checks
from veriformer.impl.training.packing import PackedRows


class Batches:
    """An endless stream of batches of `size` rows, in a new random order in each epoch.

    Every process of a distributed run has its own share of each batch: all of them together see what one alone would.
    PackedRows that fill no batch wait for another epoch, in which the order is another.
    """

    def __init__(self, rows: PackedRows, size: int, *, seed: int = 0, rank: int = 0, world: int = 1) -> None:
        self.rows, self.seed, self.rank, self.world = rows, seed, rank, world
        self.size = checks.integer("size", size, minimum=1)
        if self.size % world or self.size > len(rows):
            expected = f"a multiple of {world} processes, at most the {len(rows)} rows"
            checks.raise_for("size", expected, size, "change the size, or give a longer text")
        self.position = 0

    def __iter__(self) -> "Batches":
        return self

    def __next__(self) -> PackedRows:
        epoch, index = divmod(self.position, len(self.rows) // self.size)
        self.position += 1
        order = torch.randperm(len(self.rows), generator=torch.Generator().manual_seed(self.seed + epoch))
        start = index * self.size
        return self.rows[order[start + self.rank : start + self.size : self.world]]

    def state_dict(self) -> dict[str, int]:
        """Return where the stream stands."""
        return {"position": self.position, "seed": self.seed}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on from where a stream stood."""
        self.position, self.seed = state["position"], state["seed"]
