"""A stretch of memory for rows of keys and values."""

import torch
from torch import Tensor

from veriformer.impl.cache.quantization import Quantizer


class CacheBuffer:
    """Encoded rows in places 0 to `capacity`: whatever a quantizer makes of `[B, G, n, d]`, each part in a buffer.

    Buffers come with the first rows, on the device of these. Slots that were never written hold anything.
    """

    def __init__(self, quantizer: Quantizer, capacity: int) -> None:
        self.quantizer = quantizer
        self.capacity = capacity
        self.parts: tuple[Tensor, ...] = ()

    @property
    def device(self) -> torch.device | None:
        """Where the buffers are; None before there are any."""
        return self.parts[0].device if self.parts else None

    def write(self, start: int, x: Tensor) -> None:
        """Store rows from this place on."""
        for buffer, part in self._encoded(x):
            buffer[:, :, start : start + x.shape[2]].copy_(part)

    def allocate(self, like: Tensor) -> None:
        """Take the buffers now, all zero, for rows such as `like [B, G, n, d]`."""
        self.parts = tuple(_room(part, self.capacity).zero_() for part in self.quantizer.encode(like))

    def write_at(self, place: Tensor, x: Tensor) -> None:
        """Store rows in the places `[n]`, which the host need not know."""
        for buffer, part in self._encoded(x):
            buffer.index_copy_(2, place, part)

    def pass_through(self, stop: int, x: Tensor, kept: int) -> Tensor:
        """Return the rows in places 0 to `stop` with `x` after them, and keep the latest of all, at the front."""
        whole = [(buffer, torch.cat([buffer[:, :, :stop], part], 2)) for buffer, part in self._encoded(x)]
        for buffer, parts in whole:
            buffer[:, :, :kept].copy_(parts[:, :, stop + x.shape[2] - kept :])
        return self.quantizer.decode(tuple(parts for _, parts in whole))

    def read(self, start: int, stop: int) -> Tensor:
        """Return the rows in these places: a view of the buffer, where nothing has to be decoded."""
        return self.quantizer.decode(tuple(buffer[:, :, start:stop] for buffer in self.parts))

    def move(self, start: int, stop: int) -> None:
        """Bring the rows in these places to the front."""
        for buffer in self.parts:
            buffer[:, :, : stop - start].copy_(buffer[:, :, start:stop].clone())

    def reorder(self, index: Tensor, start: int, stop: int) -> None:
        """Give batch element `b` the rows of element `index[b]`; the buffers stay where they are."""
        for buffer in self.parts:
            used = buffer[:, :, start:stop]
            used.copy_(used.index_select(0, index.to(buffer.device)))

    def grow(self, capacity: int) -> None:
        """Take room for more rows; those that are stored keep their places."""
        old, self.parts = self.parts, tuple(_room(part, capacity) for part in self.parts)
        for buffer, part in zip(self.parts, old, strict=True):
            buffer[:, :, : self.capacity].copy_(part)
        self.capacity = capacity

    def _encoded(self, x: Tensor) -> list[tuple[Tensor, Tensor]]:
        parts = self.quantizer.encode(x.detach())
        if self.device != x.device:
            self.parts = tuple(_room(part, self.capacity) for part in parts)
        return list(zip(self.parts, parts, strict=True))


def _room(like: Tensor, capacity: int) -> Tensor:
    """Outside of inference mode, since a cache may be filled within it and used after it."""
    B, G, _, d = like.shape
    with torch.inference_mode(False):
        return torch.empty(B, G, capacity, d, dtype=like.dtype, device=like.device)
