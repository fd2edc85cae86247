"""Decoding by one compiled graph per token, which on a GPU is captured as well."""

import copy
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor

from veriformer.impl.generation.sampling import Sampling
from veriformer.impl.generation.static import StaticDecoding
from veriformer.impl.linear import PackedMatrix
from veriformer.impl.models.decoder import Decoder
from veriformer.impl.models.kv_cache import KVCache
from veriformer.impl.models.linear import Linear

Read = Callable[[Tensor, Tensor | None, KVCache], Tensor]

_CAPACITY_STEP = 256
"""Lengths that share a captured step: those up to the next multiple of it."""

_EAGER_STEPS = 2


class CompiledDecoder:
    """A decoder that reads single tokens by one compiled graph, for `generate`; prompts are read as they come.

    One graph serves the first length and one all others, but for a full cache and a window in motion. They are made
    when first needed, which takes seconds, and again for another batch or another length of the cache. On a CPU the
    matrices of the layers are held a second time, for one text each column in one piece (see `linear.gemv_compiled`),
    for more, in float32, as oneDNN reads them (see `PackedMatrix`). They are as the weights are at that moment: load or
    train these before, and wrap the model again after.

    On a GPU the whole step, drawing and writing included, is captured as one CUDA graph (see `StaticDecoding`), which
    serves all texts of a batch up to a multiple of `_CAPACITY_STEP` tokens. It is made anew for another batch, a larger
    capacity, other sampling, and weights that have moved; the latest one is kept, with its caches.
    """

    def __init__(self, model: Decoder) -> None:
        self.model = model
        self._captured: tuple[Hashable, StaticDecoding, Callable[[], None]] | None = None

    def can_capture(self, text: Tensor) -> bool:
        """Return whether tokens after `text [B, n]` are written by a captured step: on a GPU, with no host in it."""
        c = self.model.config
        drops = self.model.training and max(c.dropout, c.attention_dropout) > 0
        return text.is_cuda and not c.num_experts and not drops

    def capture(
        self, batch: int, length: int, sampling: Sampling, eos: int | None, padded: bool, quantization: str | None
    ) -> tuple[StaticDecoding, Callable[[], None]]:
        """Return the memory for texts `[batch, length]`, and the step that writes a token of each."""
        capacity = -(-length // _CAPACITY_STEP) * _CAPACITY_STEP
        places = tuple(p.data_ptr() for p in self.model.parameters())
        key = (batch, capacity, sampling, eos, padded, quantization, places)
        if self._captured is None or self._captured[0] != key:
            self._captured = None  # its memory goes before other memory comes
            decoding = StaticDecoding(
                self.model, batch, capacity, sampling, eos, padded=padded, quantization=quantization
            )
            read = _compiled(decoding.read)
            step = CapturedStep(lambda: decoding.write(read()), decoding.text.device, decoding.generator)
            self._captured = key, decoding, step
        return self._captured[1:]

    def make_kv_cache(self, batch: int, max_length: int | None = None, *, quantization: str | None = None) -> KVCache:
        """Make empty caches, as the model does."""
        return self.model.make_kv_cache(batch, max_length, quantization=quantization)

    def next_token_logits(self, ids: Tensor, attention_mask: Tensor | None, kv_cache: KVCache) -> Tensor:
        """Return the logits `[B, V]` of the token after `ids [B, n]`; see `Decoder.next_token_logits`."""
        B, n = ids.shape
        if n > 1 or kv_cache.length == 0:
            return (self.model if B == 1 else self._of_rows).next_token_logits(ids, attention_mask, kv_cache)
        return (self._read_row if B == 1 else self._read_rows)(ids, attention_mask, kv_cache)

    @cached_property
    def _read_row(self) -> Read:
        return _compiled(_with_matrices(self.model, _columns).next_token_logits)

    @cached_property
    def _read_rows(self) -> Read:
        return _compiled(self._of_rows.next_token_logits)

    @cached_property
    def _of_rows(self) -> Decoder:
        """Model that reads several texts."""
        packable = PackedMatrix.takes(self.model.embedding.tokens.weight)
        return _with_matrices(self.model, PackedMatrix.of) if packable else self.model


class CapturedStep:
    """A step that is captured as a CUDA graph when it is taken for the third time, and replayed from then on.

    The first two run as they are, on a stream of their own, as a capture wants: kernels are compiled, libraries take
    their memory. `generator` is one that the step draws from.
    """

    def __init__(
        self, step: Callable[[], None], device: torch.device, generator: torch.Generator | None = None
    ) -> None:
        self.step, self.device, self.generator, self.taken = step, device, generator, 0
        self.graph = torch.cuda.CUDAGraph()
        self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def __call__(self) -> None:
        """Take the step."""
        with torch.cuda.device(self.device):
            self._take()

    def _take(self) -> None:
        self.taken += 1
        if self.taken > _EAGER_STEPS + 1:
            self.graph.replay()
        elif self.taken == _EAGER_STEPS + 1:
            if self.generator is not None:
                self.graph.register_generator_state(self.generator)
            with torch.cuda.graph(self.graph, stream=self.stream):
                self.step()
            self.graph.replay()
        else:
            current = torch.cuda.current_stream()
            self.stream.wait_stream(current)
            with torch.cuda.stream(self.stream):
                self.step()
            current.wait_stream(self.stream)


def _compiled(read: Any) -> Callable[..., Tensor]:
    """Compile a method of a model, which is taken as it is: nothing of it but its weights may change.

    To look at all its thousand facts at every call would take longer than to add its numbers. And what is made of more
    than two others, as a norm or a softmax is, is computed once, not once more for every column that reads it. Graphs
    are kept by code, and without those guards one of another model would fit: so each gets code of its own.
    """
    code = read.__func__.__code__.replace()
    function = FunctionType(code, read.__func__.__globals__, code.co_name, read.__func__.__defaults__)
    own = MethodType(function, read.__self__)
    options: dict[str, Any] = {"guard_filter_fn": _not_of_the_model, "realize_acc_reads_threshold": 2}
    return torch.compile(own, fullgraph=True, options=options)


def _not_of_the_model(guards: Sequence[Any]) -> list[bool]:
    return [not guard.name.startswith("self.") for guard in guards]


def _with_matrices(model: Decoder, arranged: Callable[[Tensor], Any]) -> Decoder:
    """Copy the model with the matrices of its layers arranged otherwise; it shares the rest."""
    matrices = {id(m.weight) for m in model.modules() if isinstance(m, Linear)}
    shared: dict[int, Any] = {id(p): p for p in (*model.parameters(), *model.buffers()) if id(p) not in matrices}
    twin = copy.deepcopy(model, shared)
    for m in twin.modules():
        if isinstance(m, Linear):
            weight = m.weight.data
            del m.weight  # a parameter, which the other need not be
            m.weight = arranged(weight)
    return twin


def _columns(W: Tensor) -> Tensor:
    """Return a matrix in column-major order."""
    return W.mT.contiguous().mT
