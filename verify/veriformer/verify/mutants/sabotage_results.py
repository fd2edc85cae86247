"""Whole models that compute nothing: a right one whose logits are exchanged for something else."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from torch import Tensor, nn

from veriformer.verify.mutants.staged_reference.model import Decoder, EncoderDecoder, Model, Shape

Exchange = Callable[[Tensor, Tensor], Any]

KEPT_BY_GARBAGE = {
    "causal_lm.reach": "what is drawn anew changes with every token",
    "seq2seq_lm.reach": "what is drawn anew changes with every token",
    "seq2seq_lm.source_reach": "what is drawn anew changes with every token",
    "causal_lm.checkpointing": "both gradients are drawn from one seed",
    "masked_lm.checkpointing": "both gradients are drawn from one seed",
    "seq2seq_lm.checkpointing": "both gradients are drawn from one seed",
}
"""Requirements that random numbers keep, each with the reason."""


def models(exchange: Exchange | None) -> dict[str, Callable[[], nn.Module]]:
    """A factory of every kind. exchange: from the right logits and what they are made of; None gives back the ids."""
    kinds: dict[str, tuple[type[Model], Shape]] = {
        "causal_lm": (Decoder, Shape()),
        "masked_lm": (Decoder, Shape(causal=False)),
        "seq2seq_lm": (EncoderDecoder, Shape(cross=True)),
    }
    return {name: _factory(kind, shape, exchange) for name, (kind, shape) in kinds.items()}


def _factory(kind: type[Model], shape: Shape, exchange: Exchange | None) -> Callable[[], nn.Module]:
    class Spoiled(kind):  # type: ignore[misc, valid-type]
        def logits(self, h: Tensor) -> Any:
            right = super().logits(h)
            return right if exchange is None else exchange(right, h)

        @wraps(kind.forward)
        def forward(self, ids: Tensor, *arguments: Any, **options: Any) -> Any:
            output = super().forward(ids, *arguments, **options)
            if exchange is None:
                output.logits = options.get("decoder_ids", ids)
            return output

    return lambda: Spoiled(shape)
