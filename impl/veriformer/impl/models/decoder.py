"""A decoder-only model: GPT, Llama, and what lies between."""

import torch
from torch import Tensor, nn

from veriformer.impl.attention_backends import DEFAULT
from veriformer.impl.models.attention_mask import MaskSources, build_attention_mask
from veriformer.impl.models.block import TransformerStack
from veriformer.impl.models.config import ModelConfig
from veriformer.impl.models.embedding import Embedding, check_call
from veriformer.impl.models.head import Head
from veriformer.impl.models.initialization import initialize
from veriformer.impl.models.kv_cache import KVCache, make_kv_cache
from veriformer.impl.models.output import Output
from veriformer.impl.models.position import rotation, token_positions


class Decoder(nn.Module):
    """Each token is predicted from those before it."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = Embedding(config)
        self.stack = TransformerStack(config, config.num_layers, causal=True)
        self.head = Head(config)
        initialize(self, config)

    def forward(
        self,
        ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: KVCache | None = None,
        use_cache: bool = False,
        *,
        documents: Tensor | None = None,
    ) -> Output:
        """Return logits `[B, n, V]` of the token after each of `ids [B, n]` (int64), given all before it.

        They have the dtype of the weights. `attention_mask [B, past + n]` is 1 for real tokens and 0 for padding, on
        either side, which changes nothing at real positions. `documents [B, n]` numbers the texts packed into a row:
        none sees another, and each starts at position 0. `use_cache` starts a cache that grows, unless
        `past_key_values` gives one (see `make_kv_cache`) with the tokens so far. Raises `ValueError` or `TypeError` for
        what does not fit.
        """
        kv_cache = self.make_kv_cache(ids.shape[0]) if use_cache and past_key_values is None else past_key_values
        h = self.hidden_states(ids, attention_mask, kv_cache, documents=documents)
        return Output(self.head(h, self.embedding.tokens.weight), kv_cache)

    def next_token_logits(
        self, ids: Tensor, attention_mask: Tensor | None = None, kv_cache: KVCache | None = None
    ) -> Tensor:
        """Return the logits `[B, V]` of the token after the last of `ids [B, n]`: only that position meets the head."""
        h = self.hidden_states(ids, attention_mask, kv_cache)
        return self.head(h[:, -1], self.embedding.tokens.weight)  # type: ignore[no-any-return]

    def hidden_states(
        self,
        ids: Tensor,
        attention_mask: Tensor | None = None,
        kv_cache: KVCache | None = None,
        *,
        documents: Tensor | None = None,
    ) -> Tensor:
        """Return what the head turns into logits, `[B, n, d]`."""
        past = 0 if kv_cache is None else kv_cache.length
        check_call(self.config, ids, attention_mask, documents, past)
        positions = token_positions(ids, past, attention_mask, documents)
        x = self.embedding(ids, positions)  # [B, n, d]
        n_k = ids.shape[1] if kv_cache is None else kv_cache.visible(ids.shape[1])
        sources = MaskSources(True, attention_mask, documents)
        mask = build_attention_mask(self.config, x, n_k, sources, self.stack.relative_bias)
        return self.stack(x, mask, rotation(self.config, positions, x.dtype), kv_cache)  # type: ignore[no-any-return]

    def make_kv_cache(self, batch: int, max_length: int | None = None, *, quantization: str | None = None) -> KVCache:
        """Make empty caches: of `max_length` tokens, taken at once, or growing; a window bounds either.

        `quantization="int8"` stores a byte per entry.
        """
        layers, weight = len(self.stack.blocks), self.embedding.tokens.weight
        return make_kv_cache(self.config, layers, weight.dtype, batch, max_length, quantization)


def causal_lm(*, attention: str = DEFAULT) -> Decoder:
    """Build a small decoder: two layers, grouped keys, rotated positions. It is the contract's `causal_lm`.

    `attention` names its backend, as in `ModelConfig`. Its float32 weights are drawn from seed 0, to which PyTorch's
    generator is set. Raises `ValueError` for an unknown backend.
    """
    torch.manual_seed(0)
    config = ModelConfig(
        vocab_size=61,
        d_model=48,
        num_layers=2,
        num_heads=4,
        num_kv_heads=2,
        intermediate_size=80,
        position="rope",
        init_std=0.2,
        attention=attention,
    )
    return Decoder(config)
