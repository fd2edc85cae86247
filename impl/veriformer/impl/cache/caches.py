"""Caches of keys and values: growing, of a fixed length, and of a sliding window."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.cache.buffer import CacheBuffer
from veriformer.impl.cache.quantization import Int8, Plain, Quantizer


class Cache(ABC):
    r"""Keys and values of the tokens so far, oldest first.

    $$K \gets \mathrm{concat}(K, k_\mathrm{new}), \quad V \gets \mathrm{concat}(V, v_\mathrm{new})$$

    `length` counts the tokens appended since `reset()`, so that it is the position of the next one. A call that is
    refused changes nothing. The cache keeps numbers, not graphs: gradients reach the rows of the latest update alone.
    Equations 42 and 43.
    """

    window: int | None = None

    def __init__(
        self,
        batch: int,
        num_kv_heads: int,
        head_dim: int,
        *,
        max_length: int | None,
        capacity: int,
        dtype: torch.dtype,
        quantization: str | None,
    ) -> None:
        self._batch = checks.integer("batch", batch, minimum=1)
        self._num_kv_heads = checks.integer("num_kv_heads", num_kv_heads, minimum=1)
        self._head_dim = checks.integer("head_dim", head_dim, minimum=1)
        self._max_length = max_length
        self._dtype = _check_dtype(dtype)
        self._rounds = quantization is not None
        self._keys, self._values = (CacheBuffer(_quantizer(quantization, dtype), capacity) for _ in range(2))
        self._length = 0

    @property
    def length(self) -> int:
        """Number of tokens appended since the cache was new or reset."""
        return self._length

    def update(self, k_new: Tensor, v_new: Tensor) -> tuple[Tensor, Tensor]:
        """Append the rows `k_new` and `v_new`, both `[batch, num_kv_heads, n, head_dim]`; return keys and values.

        What is returned stays valid until the next call. Raises `ValueError` for other shapes and for more than
        `max_length` tokens, `TypeError` for another dtype than that of the cache.
        """
        self.check(k_new, v_new)
        k, v = self._append(k_new, v_new)
        return (k, v) if self._rounds else (_with_graph(k, k_new), _with_graph(v, v_new))

    def check(self, k_new: Tensor, v_new: Tensor) -> None:
        """Refuse what `update` would refuse."""
        shape = (self._batch, self._num_kv_heads, k_new.shape[2] if _has_rank_four(k_new) else -1, self._head_dim)
        for name, x in (("k_new", k_new), ("v_new", v_new)):
            if checks.tensor(name, x).shape != shape:
                expected = f"[{self._batch}, {self._num_kv_heads}, n, {self._head_dim}], n the same for keys and values"
                checks.raise_for(name, expected, f"shape {tuple(x.shape)}", "the cache was made for these sizes")
            if x.dtype != self._dtype:
                checks.raise_for(name, f"{self._dtype}, the dtype of the cache", x.dtype, "convert it", TypeError)
        checks.same_dtype_and_device({"k_new": k_new, "v_new": v_new})
        if self._length and k_new.device != self._keys.device:
            expected = f"device {self._keys.device}, where the cache is"
            checks.raise_for("k_new", expected, k_new.device, "move it, or reset the cache")
        if self._max_length is not None and self._length + shape[2] > self._max_length:
            room = self._max_length - self._length
            advice = f"max_length={self._max_length} is reached: reset the cache"
            checks.raise_for("k_new", f"at most {room} tokens", shape[2], advice)

    def reorder(self, index: Tensor) -> None:
        """Let batch element `b` go on with the text of element `index[b]`, as beams do; `index [batch]` is int64."""
        _check_index(index, self._batch)
        for rows in (self._keys, self._values):
            rows.reorder(index, *self._places())

    def reset(self) -> None:
        """Forget all tokens; the memory is kept."""
        self._length = 0

    def rewind(self, length: int) -> None:
        """Forget the latest tokens and keep the first `length`, as when guesses were wrong.

        Raises `ValueError` for more than there are, and with a window, which no longer has the rows that it would show.
        """
        if self.window is not None:
            checks.raise_for("window", "None, to take tokens back", self.window, "make a cache without one")
        if checks.integer("length", length, minimum=0) > self._length:
            checks.raise_for("length", f"at most the {self._length} tokens there are", length, "append them first")
        self._length = length

    @abstractmethod
    def _append(self, k_new: Tensor, v_new: Tensor) -> tuple[Tensor, Tensor]:
        """Store the rows, count them, and return what is to be seen."""

    @abstractmethod
    def _places(self) -> tuple[int, int]:
        """Return the first place in use, and the first after it that is not."""

    def _write(self, start: int, k_new: Tensor, v_new: Tensor) -> None:
        self._keys.write(start, k_new)
        self._values.write(start, v_new)

    def _read(self, start: int, stop: int) -> tuple[Tensor, Tensor]:
        return self._keys.read(start, stop), self._values.read(start, stop)


class StaticCache(Cache):
    """Room for `max_length` tokens, taken at once: no update allocates, and rows never move."""

    def __init__(
        self,
        batch: int,
        num_kv_heads: int,
        max_length: int,
        head_dim: int,
        *,
        dtype: torch.dtype = torch.float32,
        quantization: str | None = None,
    ) -> None:
        room = checks.integer("max_length", max_length, minimum=0)
        super().__init__(
            batch, num_kv_heads, head_dim, max_length=room, capacity=room, dtype=dtype, quantization=quantization
        )

    def allocate(self, device: torch.device) -> None:
        """Take the memory now, all zero, rather than with the first rows."""
        like = torch.empty(self._batch, self._num_kv_heads, 0, self._head_dim, dtype=self._dtype, device=device)
        self._keys.allocate(like)
        self._values.allocate(like)

    def update_at(self, place: Tensor, k_new: Tensor, v_new: Tensor) -> tuple[Tensor, Tensor]:
        """Store a row for each head, `[batch, num_kv_heads, 1, head_dim]`, at `place [1]`, int64 on their device.

        Return all `max_length` rows: what comes after the place was stored before, or is zero if the memory came from
        `allocate`. `length` stays as it is, for the host does not know the place; nothing is checked, and the shapes
        are the same at every place, so that a step may be captured as a CUDA graph, or compiled once.
        """
        self._keys.write_at(place, k_new)
        self._values.write_at(place, v_new)
        return self._read(0, self._keys.capacity)

    def _append(self, k_new: Tensor, v_new: Tensor) -> tuple[Tensor, Tensor]:
        self._write(self._length, k_new, v_new)
        self._length += k_new.shape[2]
        return self._read(0, self._length)

    def _places(self) -> tuple[int, int]:
        return 0, self._length


class DynamicCache(Cache):
    """As much room as the text needs: it doubles whenever it is full, so that a token is copied once on average."""

    def __init__(
        self,
        batch: int,
        num_kv_heads: int,
        head_dim: int,
        *,
        dtype: torch.dtype = torch.float32,
        quantization: str | None = None,
    ) -> None:
        super().__init__(
            batch, num_kv_heads, head_dim, max_length=None, capacity=16, dtype=dtype, quantization=quantization
        )

    def _append(self, k_new: Tensor, v_new: Tensor) -> tuple[Tensor, Tensor]:
        length = self._length + k_new.shape[2]
        for rows in (self._keys, self._values):
            if length > rows.capacity:
                rows.grow(max(length, 2 * rows.capacity))
        self._write(self._length, k_new, v_new)
        self._length = length
        return self._read(0, length)

    def _places(self) -> tuple[int, int]:
        return 0, self._length


class SlidingWindowCache(Cache):
    """The latest tokens only, as many as a window of `w` can still show: `w − 1`, in memory that does not grow.

    A ring would have to be unrolled at every step to give the oldest first. Here rows are appended to a buffer of two
    windows, and when it is full the latest `w − 1` move to its front: one copy of a row per token, and views to read.
    """

    def __init__(
        self,
        batch: int,
        num_kv_heads: int,
        max_length: int,
        head_dim: int,
        *,
        window: int,
        dtype: torch.dtype = torch.float32,
        quantization: str | None = None,
    ) -> None:
        self.window = checks.integer("window", window, minimum=1)
        length = checks.integer("max_length", max_length, minimum=0)
        room = min(2 * self.window, length)
        super().__init__(
            batch, num_kv_heads, head_dim, max_length=length, capacity=room, dtype=dtype, quantization=quantization
        )
        self._kept = self.window - 1
        self._stop = 0

    def reset(self) -> None:
        """Forget all tokens; the memory is kept."""
        super().reset()
        self._stop = 0

    def _append(self, k_new: Tensor, v_new: Tensor) -> tuple[Tensor, Tensor]:
        n = k_new.shape[2]
        self._length += n
        if self._stop + n > self._keys.capacity:
            self._make_room()
        if self._stop + n > self._keys.capacity:
            stop, self._stop = self._stop, min(self._kept, self._stop + n)
            return (
                self._keys.pass_through(stop, k_new, self._stop),
                self._values.pass_through(stop, v_new, self._stop),
            )
        start, self._stop = max(0, self._stop - self._kept), self._stop + n
        self._write(self._stop - n, k_new, v_new)
        return self._read(start, self._stop)

    def _make_room(self) -> None:
        start, stop = self._places()
        for rows in (self._keys, self._values):
            rows.move(start, stop)
        self._stop = stop - start

    def _places(self) -> tuple[int, int]:
        return max(0, self._stop - self._kept), self._stop


def _quantizer(quantization: str | None, dtype: torch.dtype) -> Quantizer:
    if quantization is None:
        return Plain(dtype)
    if quantization != "int8":
        checks.raise_for("quantization", 'None or "int8"', repr(quantization), "choose one of them")
    return Int8(dtype)


def _with_graph(shown: Tensor, new: Tensor) -> Tensor:
    """Return the new rows themselves in the place of their copies, where they want a gradient."""
    if not (torch.is_grad_enabled() and new.requires_grad):
        return shown
    return torch.cat([shown[:, :, : shown.shape[2] - new.shape[2]], new], 2)


def _check_dtype(dtype: object) -> torch.dtype:
    if not isinstance(dtype, torch.dtype) or dtype not in checks.FLOATING:
        checks.raise_for("dtype", "float64, float32, bfloat16 or float16", dtype, "choose one of them", TypeError)
    return dtype


def _has_rank_four(x: object) -> bool:
    return isinstance(x, Tensor) and x.ndim == 4


def _check_index(index: Tensor, batch: int) -> None:
    if not isinstance(index, Tensor) or index.dtype != torch.int64:
        got = index.dtype if isinstance(index, Tensor) else type(index).__name__
        checks.raise_for("index", "an int64 tensor", got, "give each element the one it goes on from", TypeError)
    if index.shape != (batch,):
        checks.raise_for("index", f"shape [{batch}], one per batch element", f"shape {tuple(index.shape)}", "see batch")
    if checks.can_read_values(index) and bool(((index < 0) | (index >= batch)).any()):
        checks.raise_for("index", f"elements from 0 to {batch - 1}", index.tolist(), "choose among the batch")
