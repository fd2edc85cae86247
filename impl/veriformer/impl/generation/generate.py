"""Generation with a cache: read the prompt in chunks, then one token at a time."""

from collections.abc import Sequence

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.generation.compiled import CompiledDecoder
from veriformer.impl.generation.sampling import GREEDY, Sampling
from veriformer.impl.models.decoder import Decoder
from veriformer.impl.models.kv_cache import KVCache


@torch.inference_mode()
def generate(
    model: Decoder | CompiledDecoder,
    ids: Tensor,
    attention_mask: Tensor | None = None,
    *,
    max_new_tokens: int,
    sampling: Sampling = GREEDY,
    eos: int | None = None,
    chunk: int | None = None,
    quantization: str | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Continue every row of `ids [B, n]` by up to `max_new_tokens` tokens: int64 `[B, n + new]`.

    Prompts of different lengths are padded on the left (see `left_padded`) and come with their `attention_mask`. Rows
    that reached `eos` are filled with it; generation ends when all have. `chunk` bounds how many prompt tokens one call
    reads, and with it the memory for scores. The cache is taken at once, for the whole text; nothing is reallocated.
    A `CompiledDecoder` writes the same in less time, on a GPU by one CUDA graph per token.
    Raises `ValueError` or `TypeError` for what does not fit, such as a mask that ends in padding.
    """
    new = checks.integer("max_new_tokens", max_new_tokens, minimum=0)
    B, n = checks.integers("ids", ids).shape
    text = torch.full((B, n + new), 0 if eos is None else eos, dtype=torch.int64, device=ids.device)
    text[:, :n] = ids
    real = _whole_mask(attention_mask, text, n)
    if isinstance(model, CompiledDecoder) and new > 0 and model.can_capture(text):
        decoding, step = model.capture(B, n + new, sampling, eos, real is not None, quantization)
        decoding.kv_cache.reset()
        logits = prefill(model, text[:, :n], real, decoding.kv_cache, chunk)
        return decoding.run(text, n, real, logits, generator, step)
    kv_cache = model.make_kv_cache(B, n + new, quantization=quantization)
    done = torch.zeros(B, dtype=torch.bool, device=ids.device)
    start = 0
    for stop in range(n, n + new):
        logits = prefill(model, text[:, start:stop], real, kv_cache, chunk)
        token = sampling.draw(logits, generator)  # [B]
        if eos is not None:
            token = token.masked_fill(done, eos)
            done |= token == eos
        text[:, stop], start = token, stop
        if eos is not None and bool(done.all()):
            return text[:, : stop + 1]
    return text


def prefill(
    model: Decoder | CompiledDecoder, ids: Tensor, real: Tensor | None, kv_cache: KVCache, chunk: int | None = None
) -> Tensor:
    """Read `ids [B, n]` into the cache, and return the logits after the last of them, `[B, V]`.

    `real` is the mask of the whole text, or None.
    """
    n = ids.shape[1]
    size = n if chunk is None else checks.integer("chunk", chunk, minimum=1)
    for piece in torch.split(ids, size, 1):
        seen = None if real is None else real[:, : kv_cache.length + piece.shape[1]]
        logits = model.next_token_logits(piece, seen, kv_cache)
    return logits


def left_padded(texts: Sequence[Sequence[int]], padding: int = 0) -> tuple[Tensor, Tensor]:
    """Return `ids` and `attention_mask`, both int64 `[B, n]`, of texts of different lengths, aligned at their ends."""
    if not texts or not all(texts):
        checks.raise_for("texts", "texts of at least one token", "an empty one", "start each with a first token")
    n = max(len(text) for text in texts)
    ids = torch.tensor([[padding] * (n - len(text)) + list(text) for text in texts])
    mask = torch.tensor([[0] * (n - len(text)) + [1] * len(text) for text in texts])
    return ids, mask


def _whole_mask(attention_mask: Tensor | None, text: Tensor, n: int) -> Tensor | None:
    if attention_mask is None:
        return None
    if attention_mask.shape != (text.shape[0], n) or not bool(attention_mask[:, -1].all()):
        got = f"shape {tuple(attention_mask.shape)}, or padding at the end"
        checks.raise_for("attention_mask", f"shape {[text.shape[0], n]}, ending in 1", got, "pad prompts on the left")
    real = torch.ones_like(text)
    real[:, :n] = attention_mask
    return real
