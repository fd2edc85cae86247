"""An encoder and a decoder that reads it: T5, and the Transformer of the first paper."""

import torch
from torch import Tensor, nn

from veriformer.impl import checks
from veriformer.impl.attention_backends import DEFAULT
from veriformer.impl.models.attention_mask import AttentionMask, MaskSources, build_attention_mask, key_mask
from veriformer.impl.models.block import Keys, TransformerStack
from veriformer.impl.models.config import ModelConfig
from veriformer.impl.models.embedding import Embedding, check_call
from veriformer.impl.models.families import t5
from veriformer.impl.models.head import Head
from veriformer.impl.models.initialization import initialize
from veriformer.impl.models.kv_cache import KVCache, make_kv_cache
from veriformer.impl.models.output import Output
from veriformer.impl.models.position import rotation, token_positions


class EncoderDecoder(nn.Module):
    """Each target token is predicted from those before it and from the whole source.

    Both sides share the embedding. A `window` is the decoder's own.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = Embedding(config)
        self.encoder = TransformerStack(config, config.num_layers, causal=False)
        self.decoder = TransformerStack(config, config.decoder_layers, causal=True, cross=True)
        self.head = Head(config)
        initialize(self, config)

    def forward(
        self,
        ids: Tensor | None,
        attention_mask: Tensor | None = None,
        past_key_values: KVCache | None = None,
        use_cache: bool = False,
        *,
        decoder_ids: Tensor,
        decoder_attention_mask: Tensor | None = None,
    ) -> Output:
        """Return logits `[B, n, V]` of the token after each of `decoder_ids [B, n]`, given the source `ids [B, m]`.

        They have the dtype of the weights. `attention_mask [B, m]` and `decoder_attention_mask [B, past + n]` are 1 for
        real tokens and 0 for padding. With `past_key_values` the source was read before, and `ids` is None. Raises
        `ValueError` or `TypeError` for what does not fit.
        """
        kv_cache = (
            self.make_kv_cache(decoder_ids.shape[0]) if use_cache and past_key_values is None else past_key_values
        )
        if ids is not None:
            keys, keys_mask = self.encode(ids, attention_mask)
            if kv_cache is not None:
                kv_cache.context, kv_cache.context_mask = keys, keys_mask
        elif kv_cache is None or not kv_cache.context:
            checks.raise_for("ids", "the source, or past_key_values that remember one", "neither", "pass one of them")
        else:
            keys, keys_mask = kv_cache.context, kv_cache.context_mask
        h = self.decode(decoder_ids, keys, keys_mask, decoder_attention_mask, kv_cache)
        return Output(self.head(h, self.embedding.tokens.weight), kv_cache)

    def encode(self, ids: Tensor, attention_mask: Tensor | None = None) -> tuple[list[Keys], Tensor | None]:
        """Return what each layer of the decoder reads of the source, and which of it is real."""
        context = self._read(self.encoder, ids, attention_mask)  # [B, m, d]
        keys = [block.cross.keys(context) for block in self.decoder.blocks]  # type: ignore[union-attr, operator]
        return keys, None if attention_mask is None else key_mask(attention_mask)

    def decode(
        self,
        ids: Tensor,
        keys: list[Keys],
        keys_mask: Tensor | None,
        attention_mask: Tensor | None = None,
        kv_cache: KVCache | None = None,
    ) -> Tensor:
        """Return what the head turns into logits, `[B, n, d]`."""
        return self._read(self.decoder, ids, attention_mask, kv_cache, keys, AttentionMask(keys_mask))

    def make_kv_cache(self, batch: int, max_length: int | None = None, *, quantization: str | None = None) -> KVCache:
        """Make empty caches for the target, as `Decoder.make_kv_cache` does."""
        layers, weight = len(self.decoder.blocks), self.embedding.tokens.weight
        return make_kv_cache(self.config, layers, weight.dtype, batch, max_length, quantization)

    def _read(
        self,
        stack: TransformerStack,
        ids: Tensor,
        attention_mask: Tensor | None,
        kv_cache: KVCache | None = None,
        *context: list[Keys] | AttentionMask,
    ) -> Tensor:
        past = 0 if kv_cache is None else kv_cache.length
        check_call(self.config, ids, attention_mask, past=past)
        positions = token_positions(ids, past, attention_mask)
        x = self.embedding(ids, positions)
        n_k = ids.shape[1] if kv_cache is None else kv_cache.visible(ids.shape[1])
        sources = MaskSources(stack.causal, attention_mask)
        mask = build_attention_mask(self.config, x, n_k, sources, stack.relative_bias)
        turned = rotation(self.config, positions, x.dtype)
        return stack(x, mask, turned, kv_cache, *context)  # type: ignore[no-any-return]


def seq2seq_lm(*, attention: str = DEFAULT) -> EncoderDecoder:
    """Build a small encoder and decoder: two layers each, biases of relative positions, cross-attention.

    It is the contract's `seq2seq_lm`. `attention` and what is drawn are as in `causal_lm`.
    """
    torch.manual_seed(0)
    return EncoderDecoder(
        t5(
            vocab_size=61,
            d_model=48,
            num_layers=2,
            num_heads=4,
            intermediate_size=80,
            init_std=0.2,
            attention=attention,
        )
    )
