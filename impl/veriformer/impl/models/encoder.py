"""An encoder-only model: BERT."""

import torch
from torch import Tensor, nn

from veriformer.impl import checks
from veriformer.impl.attention_backends import DEFAULT
from veriformer.impl.models.attention_mask import MaskSources, build_attention_mask
from veriformer.impl.models.block import TransformerStack
from veriformer.impl.models.config import ModelConfig
from veriformer.impl.models.embedding import Embedding, check_call
from veriformer.impl.models.families import bert
from veriformer.impl.models.head import Head
from veriformer.impl.models.initialization import initialize
from veriformer.impl.models.output import Output
from veriformer.impl.models.position import rotation, token_positions


class Encoder(nn.Module):
    """Each token is predicted, where it is masked, from those on both sides."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        if config.window is not None:
            checks.raise_for("window", "None in an encoder", config.window, "a window ends at the causal edge")
        self.config = config
        self.embedding = Embedding(config)
        self.stack = TransformerStack(config, config.num_layers, causal=False)
        self.head = Head(config)
        initialize(self, config)

    def forward(
        self,
        ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        segments: Tensor | None = None,
        documents: Tensor | None = None,
    ) -> Output:
        """Return logits `[B, n, V]`, in the dtype of the weights, of every token of `ids [B, n]`, given all the others.

        `attention_mask` and `documents` are as in `Decoder`; `segments [B, n]` are BERT's token types.
        """
        h = self.hidden_states(ids, attention_mask, segments=segments, documents=documents)
        return Output(self.head(h, self.embedding.tokens.weight))

    def hidden_states(
        self,
        ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        segments: Tensor | None = None,
        documents: Tensor | None = None,
    ) -> Tensor:
        """Return what the head turns into logits, `[B, n, d]`."""
        check_call(self.config, ids, attention_mask, documents)
        positions = token_positions(ids, 0, attention_mask, documents)
        x = self.embedding(ids, positions, segments)
        sources = MaskSources(False, attention_mask, documents)
        mask = build_attention_mask(self.config, x, ids.shape[1], sources, self.stack.relative_bias)
        return self.stack(x, mask, rotation(self.config, positions, x.dtype))  # type: ignore[no-any-return]


def masked_lm(*, attention: str = DEFAULT) -> Encoder:
    """Build a small encoder: two layers, learned positions, norms after the sums. It is the contract's `masked_lm`.

    `attention` and what is drawn are as in `causal_lm`.
    """
    torch.manual_seed(0)
    return Encoder(
        bert(
            vocab_size=61,
            d_model=48,
            num_layers=2,
            num_heads=4,
            intermediate_size=80,
            init_std=0.2,
            attention=attention,
        )
    )
