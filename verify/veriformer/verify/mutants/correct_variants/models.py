"""Correct models that go another way: other positions, norms, groups, windows, orders of computation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from veriformer.verify.mutants.records import Variant, variant
from veriformer.verify.mutants.staged_reference.model import (
    Attention,
    Block,
    Decoder,
    EncoderDecoder,
    Model,
    Scene,
    Shape,
)
from veriformer.verify.mutants.staged_reference.narrow import Autocast, InHalf, NarrowKeysBlock


class _Materialised(Attention):
    """Attention with explicit weights, normalised in fp32 in every dtype."""

    def forward(self, x: Tensor, source: Tensor, scene: Scene, layer: int | None) -> Tensor:
        B, n, _ = x.shape
        q = self.q(x).view(B, n, -1, self.d).transpose(1, 2)
        k, v = self.kv(source).view(B, source.shape[1], 2 * self.s.groups, self.d).transpose(1, 2).chunk(2, 1)
        if layer is not None and scene.kv_cache is not None:
            k, v = scene.kv_cache.extend(layer, k, v)
        k, v = (t.repeat_interleave(self.s.heads // self.s.groups, 1) for t in (k, v))
        see, bias = scene.see, scene.bias
        scores = torch.einsum("bhid,bhjd->bhij", q, k) * self.d**-0.5 + (0.0 if bias is None else bias)
        weights = F.softmax(scores.masked_fill(~see, -1e30).float(), -1).to(v.dtype)
        weights = F.dropout(weights, self.s.dropout, self.training)
        return self.out((weights @ v).transpose(1, 2).reshape(B, n, -1))  # type: ignore[no-any-return]


class _Spelled(Block):
    def __init__(self, s: Shape, *, cross: bool) -> None:
        super().__init__(s, cross=cross)
        self.attention = _Materialised(s)


class _Narrow(Decoder):
    block = _Spelled


class _RowByRow(Decoder):
    """Each row of a batch by itself, its feed-forward network token by token."""

    def through(self, blocks: Any, x: Tensor, scene: Scene) -> Tensor:
        if scene.kv_cache is not None:
            return super().through(blocks, x, scene)
        rows = [
            super(_RowByRow, self).through(
                blocks, x[i : i + 1], Scene(scene.see[i : i + 1], scene.bias, scene.positions[i : i + 1])
            )
            for i in range(len(x))
        ]
        return torch.cat(rows)


class _Looking(Decoder):
    """Decoder that returns the logits alone and knows neither cache, labels nor documents."""

    def forward(self, ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:  # type: ignore[override]
        return self.logits(self.run(ids, attention_mask, None))


class _Autocast(Autocast, Decoder):
    inner = torch.bfloat16


class _InHalf(InHalf, Decoder):
    inner = torch.bfloat16


class _NarrowKeys(Decoder):
    block = NarrowKeysBlock


def decoder(kind: Callable[[Shape], Model] = Decoder, **sizes: Any) -> Callable[[], Model]:
    """Return a factory of a decoder."""
    return lambda: kind(Shape(**sizes))


def encoder(kind: Callable[[Shape], Model] = Decoder, **sizes: Any) -> Callable[[], Model]:
    """Return a factory of an encoder."""
    return lambda: kind(Shape(causal=False, **sizes))


def both(kind: Callable[[Shape], Model] = EncoderDecoder, **sizes: Any) -> Callable[[], Model]:
    """Return a factory of an encoder-decoder."""
    return lambda: kind(Shape(cross=True, **sizes))


VARIANTS: tuple[Variant, ...] = (
    variant("decoder-learned", "a decoder with learned positions", causal_lm=decoder()),
    variant("decoder-rope", "a decoder with rotated positions", causal_lm=decoder(position="rope")),
    variant("decoder-alibi", "a decoder with linear biases", causal_lm=decoder(position="alibi")),
    variant("decoder-relative", "a decoder with learned biases of distance", causal_lm=decoder(position="relative")),
    variant("decoder-post-norm", "a decoder normed behind the sum", causal_lm=decoder(norm="post", position="rope")),
    variant("decoder-window", "a decoder with a window of three", causal_lm=decoder(window=3, position="rope")),
    variant("decoder-one-group", "a decoder with one key head, not tied", causal_lm=decoder(groups=1, tied=False)),
    variant("decoder-fp32-softmax", "softmax in fp32 inside fp64", causal_lm=decoder(_Narrow)),
    variant(
        "decoder-autocast",
        "bf16 under autocast",
        claims={"dtypes": ["fp32"]},
        causal_lm=decoder(_Autocast, position="rope"),
    ),
    variant("decoder-bf16-layers", "layers in bf16 whatever the dtype", causal_lm=decoder(_InHalf)),
    variant("decoder-bf16-keys", "keys and values kept in bf16", causal_lm=decoder(_NarrowKeys, position="rope")),
    variant("decoder-row-by-row", "row by row", causal_lm=decoder(_RowByRow, position="relative")),
    variant("decoder-logits-alone", "nothing but logits", causal_lm=decoder(_Looking)),
    variant("encoder-learned", "an encoder with learned positions", masked_lm=encoder()),
    variant("encoder-relative", "an encoder with biases of distance", masked_lm=encoder(position="relative")),
    variant("encoder-post-norm", "an encoder normed behind the sum", masked_lm=encoder(norm="post", groups=4)),
    variant("encoder-decoder-learned", "both, learned positions", seq2seq_lm=both()),
    variant("encoder-decoder-relative", "both, biases of distance", seq2seq_lm=both(position="relative")),
    variant("encoder-decoder-rope", "both, rotated positions", seq2seq_lm=both(position="rope", norm="post")),
)
