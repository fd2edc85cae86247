"""Generation in memory that stays where it is: every step is the same work, whatever the length of the text."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.attention_backends.flash.triton import reads_cache_in_pieces
from veriformer.impl.cache.caches import StaticCache
from veriformer.impl.generation.sampling import GREEDY, Sampling
from veriformer.impl.models.attention_mask import AttentionMask
from veriformer.impl.models.decoder import Decoder
from veriformer.impl.models.embedding import check_call
from veriformer.impl.models.kv_cache import KVCache
from veriformer.impl.models.position import Rotation, alibi, rotation
from veriformer.impl.precision import accumulation_dtype

LAG = 8
"""Steps after which the host looks whether all rows had ended: until then it need not wait for them."""


@dataclass(frozen=True)
class _Row:
    """The cache of a layer, whose next row goes to `place [1]`."""

    cache: StaticCache
    place: Tensor

    def update(self, k_new: Tensor, v_new: Tensor) -> tuple[Tensor, Tensor]:
        return self.cache.update_at(self.place, k_new, v_new)


class _Notes:
    """Notes on the latest steps of a run: whether all rows had ended, copied without waiting, and the generator."""

    def __init__(self, flag: Tensor, watched: bool, generator: torch.Generator | None) -> None:
        self.flag, self.watched, self.generator = flag, watched, generator
        self.on_gpu = watched and flag.is_cuda
        self.flags = torch.zeros(LAG, dtype=torch.bool, device="cpu", pin_memory=self.on_gpu)
        self.events = [torch.cuda.Event() for _ in range(LAG)] if self.on_gpu else []  # type: ignore[no-untyped-call]
        self.states: dict[int, Tensor] = {}

    def take(self, end: int) -> None:
        """Note the step that wrote column `end`."""
        if self.watched:
            self.flags[end % LAG].copy_(self.flag, non_blocking=True)
        if self.on_gpu:
            self.events[end % LAG].record()
        if self.generator is not None:
            self.states[end] = self.generator.get_state()
            self.states.pop(end - LAG - 1, None)

    def ended(self, end: int) -> bool:
        """Return whether all rows had ended with column `end`, one of the latest `LAG`; never if nobody watches."""
        if self.on_gpu:
            self.events[end % LAG].synchronize()
        return bool(self.flags[end % LAG])


class StaticDecoding:
    """Texts of a batch that grow by one token a step, with the caches of a decoder.

    `step` reads the latest token, draws the next one and writes it down. It asks the host for nothing, gives nothing
    to the host, and its shapes do not depend on the length, which is a number on the device: so it can be captured
    once as a CUDA graph, and replayed for every token of every text of up to `capacity` tokens. Attention goes through
    the keys that are there by `attend_to_cache`, where that can run, or else by the model's backend through the whole
    capacity under a mask. All options of a `Decoder` are served but a mixture of experts, whose products the host has
    to cut up, and dropout.

    `padded` texts come with a mask; `quantization` is that of the caches. Weights may change between two texts, in
    their place.
    """

    def __init__(
        self,
        model: Decoder,
        batch: int,
        capacity: int,
        sampling: Sampling = GREEDY,
        eos: int | None = None,
        *,
        padded: bool = False,
        quantization: str | None = None,
    ) -> None:
        self.model, self.capacity, self.sampling, self.eos = model, capacity, sampling, eos
        c, weight = model.config, model.embedding.tokens.weight
        device = weight.device
        caches = [
            StaticCache(batch, c.kv_heads, capacity, c.d_k, dtype=weight.dtype, quantization=quantization)
            for _ in model.stack.blocks
        ]
        for cache in caches:
            cache.allocate(device)
        self.kv_cache = KVCache(caches)
        self.text = torch.zeros(batch, capacity, dtype=torch.int64, device=device)
        self.place = torch.zeros(1, dtype=torch.int64, device=device)  # of the latest token, which is yet to be read
        self.done = torch.zeros(batch, dtype=torch.bool, device=device)
        self.ended = torch.zeros((), dtype=torch.bool, device=device)
        self.real = torch.ones(batch, 1, 1, capacity, dtype=torch.bool, device=device) if padded else None
        self.padding = torch.zeros(batch, 1, dtype=torch.int64, device=device) if padded else None
        # A graph keeps to the generator that it was captured with: calls lend this one the state of theirs.
        self.generator = torch.Generator(device) if sampling.temperature > 0 else None
        self._rows = [_Row(cache, self.place) for cache in caches]
        self._keys = torch.arange(capacity, device=device)
        self._turns = rotation(c, self._keys[None], weight.dtype)
        wide = accumulation_dtype(weight.dtype)
        self._alibi = alibi(c, 1, capacity, device, wide) if c.position == "alibi" else None
        biased = c.position in ("alibi", "t5")
        by_kernels = c.attention == "triton" or (c.attention == "sdpa" and weight.is_cuda)
        query = weight.new_empty(1, c.num_heads, 1, c.d_k)
        self._in_pieces = by_kernels and not biased and reads_cache_in_pieces(query, c.kv_heads)

    def step(self) -> None:
        """Read the latest token of every row, and write the next."""
        self.write(self.read())

    def read(self) -> Tensor:
        """Return the logits `[B, V]` of the token after the latest, which enters the caches."""
        model, place = self.model, self.place
        positions = place[None] if self.padding is None else place - self.padding  # [B or 1, 1]
        x = model.embedding(self.text.index_select(1, place), positions)  # [B, 1, d]
        mask, turned = self._mask(x.dtype), self._turned(positions)
        for block, row in zip(model.stack.blocks, self._rows, strict=True):
            x = block(x, mask, turned, row)
        return model.head(model.stack.norm(x)[:, -1], model.embedding.tokens.weight)  # type: ignore[no-any-return]

    def write(self, logits: Tensor) -> None:
        """Draw the next token of every row from `logits [B, V]`; a row that has ended goes on with `eos`."""
        token = self.sampling.draw(logits, self.generator)
        if self.eos is not None:
            token = token.masked_fill(self.done, self.eos)
            self.done.logical_or_(token == self.eos)
            self.ended.copy_(self.done.all())
        self.place.add_(1)
        self.text.index_copy_(1, self.place, token[:, None])

    def run(
        self,
        text: Tensor,
        n: int,
        real: Tensor | None,
        logits: Tensor,
        generator: torch.Generator | None = None,
        step: Callable[[], None] | None = None,
    ) -> Tensor:
        """Return `text [B, n + new]` with new tokens after the first n, which are in the caches already.

        `logits [B, V]` are those after the prompt, `real [B, n + new]` its mask or None, and `step` does the same as
        the method does. All rows end with `eos` where the last of them reached it. Nothing waits for the device at a
        token: whether all rows have ended is looked at `LAG` steps later, and what was written since is cut off. Nor
        does the generator move on for it.
        """
        self._begin(text, n, real)
        own, used = self.generator, None if self.generator is None else _generator(generator, text.device)
        if own is not None and used is not None:
            own.set_state(used.get_state())
        notes, columns = _Notes(self.ended, self.eos is not None, own), range(n, self._readable(text.shape[1]))
        end = self._advance(logits, columns, notes, step or self.step)
        if used is not None:
            used.set_state(notes.states[end])
        if end + 1 < text.shape[1] and not notes.ended(end):
            check_call(self.model.config, self.text[:, :1], None, past=end)  # refuses
        return self.text[:, : end + 1].clone()

    def _advance(self, logits: Tensor, columns: range, notes: _Notes, step: Callable[[], None]) -> int:
        """Write the columns, and return the first with which all rows had ended, or the last."""
        for end in columns:
            if end - LAG in columns and notes.ended(end - LAG):
                return end - LAG
            if end == columns.start:
                self.write(logits)
            else:
                step()
            notes.take(end)
        return next((end for end in columns[-LAG:] if notes.ended(end)), columns[-1])

    def _readable(self, stop: int) -> int:
        """Return how many columns can be written before positions end, of `stop`."""
        c = self.model.config
        return min(stop, c.max_length + 1) if c.position == "learned" else stop

    def _begin(self, text: Tensor, n: int, real: Tensor | None) -> None:
        self.text[:, : text.shape[1]] = text
        self.place.fill_(n - 1)
        self.done.zero_()
        if real is not None and self.real is not None and self.padding is not None:
            self.real.fill_(True)
            self.real[..., : real.shape[1]] = real[:, None, None]
            self.padding.copy_((real == 0).sum(1, keepdim=True))

    def _mask(self, dtype: torch.dtype) -> AttentionMask:
        """Return what the query at `place` sees: the keys up to it, within the window, that are real."""
        window = self.model.config.window
        if self._in_pieces:
            return AttentionMask(self.real, window=window, length=self.place + 1)
        seen = self._keys <= self.place
        if window is not None:
            seen = seen & (self._keys > self.place - window)
        visible = seen[None, None, None] if self.real is None else seen & self.real
        bias = self._bias()
        if bias is None:
            return AttentionMask(visible)
        return AttentionMask(None, bias.to(accumulation_dtype(dtype)).masked_fill(~visible, -torch.inf))

    def _bias(self) -> Tensor | None:
        """Return `[1, H, 1, capacity]`: a bias depends on distances alone, so it is that of the last place, moved."""
        relative, last = self.model.stack.relative_bias, self.capacity - 1
        of_last = self._alibi if relative is None else relative(1, self.capacity)
        if of_last is None:
            return None
        return of_last.index_select(3, (self._keys + last - self.place).clamp(max=last))

    def _turned(self, positions: Tensor) -> Rotation | None:
        if self._turns is None:
            return None
        cos, sin = (table[0, 0][positions][:, None] for table in self._turns)  # [B or 1, 1, 1, d_k / 2]
        return cos, sin


def _generator(given: torch.Generator | None, device: torch.device) -> torch.Generator:
    """Return the generator that a call draws from: PyTorch's own, unless one was given."""
    checked = checks.generator("generator", given, device)
    if checked is not None:
        return checked
    return torch.cuda.default_generators[device.index or 0] if device.type == "cuda" else torch.default_generator
