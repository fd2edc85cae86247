"""Packed training batches: rows of tokens, the tokens that follow them, and which document each belongs to.

The order in which rows are seen is a function of a seed and a position, so that a run can go on where it stopped.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from veriformer.impl import checks

IGNORED = -100


@dataclass(frozen=True)
class PackedRows:
    """`ids`, `labels` and `documents`, all int64 `[R, n]`; `documents` is None where each row is one text.

    The label of a token is the one that follows it in its document, and `IGNORED` where none does.
    """

    ids: Tensor
    labels: Tensor
    documents: Tensor | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: Tensor | slice) -> "PackedRows":
        return PackedRows(
            self.ids[index], self.labels[index], None if self.documents is None else self.documents[index]
        )

    def to(self, device: torch.device) -> "PackedRows":
        """Move everything to a device."""
        documents = None if self.documents is None else self.documents.to(device)
        return PackedRows(self.ids.to(device), self.labels.to(device), documents)


def windows(tokens: Tensor, length: int) -> PackedRows:
    """Cut one long text `tokens [t]` into rows of `length`, each token predicted once; a rest is left over."""
    n = checks.integer("length", length, minimum=1)
    count = (len(checks.integers("tokens", tokens)) - 1) // n
    if count < 1:
        checks.raise_for("tokens", f"more than {n} of them", len(tokens), "give a longer text, or shorten the rows")
    return PackedRows(tokens[: count * n].view(count, n), tokens[1 : count * n + 1].view(count, n))


def pack(texts: Sequence[Sequence[int]], length: int, *, padding: int = 0) -> PackedRows:
    """Put texts into rows of `length`, several in one, so that little is padded and none sees another.

    A text goes into the first row that has room for it (first fit, the longest first); one longer than a row is cut
    into pieces. Documents are numbered from 0 on in each row; padding has the number −1.
    """
    n = checks.integer("length", length, minimum=1)
    pieces = [text[i : i + n] for text in texts for i in range(0, len(text), n)]
    rows: list[list[Sequence[int]]] = []
    room: list[int] = []
    for piece in sorted(pieces, key=len, reverse=True):
        place = next((r for r, free in enumerate(room) if free >= len(piece)), len(rows))
        if place == len(rows):
            rows.append([])
            room.append(n)
        rows[place].append(piece)
        room[place] -= len(piece)
    filled = [_row(row, n, padding) for row in rows]
    ids, labels, documents = (torch.tensor(columns).view(-1, n) for columns in zip(*filled, strict=True))
    return PackedRows(ids, labels, documents)


def _row(texts: Sequence[Sequence[int]], n: int, padding: int) -> tuple[list[int], list[int], list[int]]:
    ids = [token for text in texts for token in text]
    labels = [token for text in texts for token in (*text[1:], IGNORED)]
    documents = [number for number, text in enumerate(texts) for _ in text]
    rest = n - len(ids)
    return ids + [padding] * rest, labels + [IGNORED] * rest, documents + [-1] * rest


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
