"""Small models of x-transformers with random weights: a decoder, an encoder, and both."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

from torch import Tensor, nn

_library: Any = import_module("x_transformers")

_WIDTHS: dict[str, Any] = {"dim": 24, "depth": 2, "heads": 4, "attn_dim_head": 6, "verbose": False}
_ROTARY: dict[str, Any] = {**_WIDTHS, "rotary_pos_emb": True, "rotary_emb_dim": 6}
_WRAPPER: dict[str, Any] = {"num_tokens": 37, "max_seq_len": 96}


def _bool(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else mask.bool()


class Decoder(nn.Module):
    """A decoder in Llama's style: rotary positions, RMS norms, shared keys, gated layers, and a cache."""

    def __init__(self) -> None:
        super().__init__()
        layers = _library.Decoder(
            **_ROTARY, attn_kv_heads=2, use_rmsnorm=True, ff_glu=True, ff_swish=True, ff_no_bias=True
        )
        self.net = _library.TransformerWrapper(**_WRAPPER, use_abs_pos_emb=False, attn_layers=layers)

    def forward(
        self,
        ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool = False,
    ) -> SimpleNamespace:
        """Return the logits of the given tokens, which follow those of the cache."""
        logits, kept = self.net(
            ids,
            mask=_bool(attention_mask),
            cache=past_key_values,
            cache_age=ids.shape[1],
            input_not_include_cache=True,
            return_intermediates=True,
        )
        return SimpleNamespace(logits=logits, past_key_values=kept if use_cache else None)


class Encoder(nn.Module):
    """An encoder with ALiBi and layer norms."""

    def __init__(self) -> None:
        super().__init__()
        layers = _library.Encoder(**_WIDTHS, alibi_pos_bias=True)
        self.net = _library.TransformerWrapper(**_WRAPPER, use_abs_pos_emb=False, attn_layers=layers)

    def forward(self, ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return the logits of every token."""
        logits: Tensor = self.net(ids, mask=_bool(attention_mask))
        return logits


class EncoderDecoder(nn.Module):
    """An encoder and a decoder that attends to it, with T5's bias."""

    def __init__(self) -> None:
        super().__init__()
        bias: dict[str, Any] = {**_WIDTHS, "rel_pos_bias": True, "rel_pos_num_buckets": 8, "rel_pos_max_distance": 20}
        wrapper: dict[str, Any] = {**_WRAPPER, "use_abs_pos_emb": False}
        self.encoder = _library.TransformerWrapper(
            **wrapper, return_only_embed=True, attn_layers=_library.Encoder(**bias)
        )
        self.decoder = _library.TransformerWrapper(**wrapper, attn_layers=_library.Decoder(**bias, cross_attend=True))

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
    ) -> Tensor:
        """Return the logits of the decoder's tokens."""
        seen = _bool(attention_mask)
        source = self.encoder(input_ids, mask=seen, return_embeddings=True)
        logits: Tensor = self.decoder(
            decoder_input_ids, mask=_bool(decoder_attention_mask), context=source, context_mask=seen
        )
        return logits


RAW_OPS: dict[str, Any] = {"causal_lm": Decoder, "masked_lm": Encoder, "seq2seq_lm": EncoderDecoder}
"""By the contract's names."""
