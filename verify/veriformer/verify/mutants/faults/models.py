"""Faults of whole models: positions, padding, caches, tied weights, packing, recomputation."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from veriformer.verify.mutants.combinators import Fault, replace_by
from veriformer.verify.mutants.correct_variants.models import both, decoder, encoder
from veriformer.verify.mutants.staged_reference.model import Attention, Block, Decoder, EncoderDecoder, Scene, Shape


class _SharedPositions(Decoder):
    def positions(self, ids: Tensor, past: int, mask: Tensor | None, documents: Tensor | None) -> Tensor:
        return super().positions(ids, past, None, documents)


class _PositionsGoOn(Decoder):
    def positions(self, ids: Tensor, past: int, mask: Tensor | None, documents: Tensor | None) -> Tensor:
        return super().positions(ids, past, mask, None)


class _CrossesDocuments(Decoder):
    def visible(self, ids: Tensor, past: int, mask: Tensor | None, documents: Tensor | None, *, causal: bool) -> Tensor:
        return super().visible(ids, past, mask, None, causal=causal)


class _UnmaskedDecoding(Decoder):
    def visible(self, ids: Tensor, past: int, mask: Tensor | None, documents: Tensor | None, *, causal: bool) -> Tensor:
        return super().visible(ids, past, None if past else mask, documents, causal=causal)


class _UnmaskedCross(EncoderDecoder):
    def seen(self, real: Tensor) -> Tensor:
        return super().seen(torch.ones_like(real))


class _AheadAbove(Attention):
    """The first layer counts the tokens of this call before the others ask for the count."""

    def turn(self, x: Tensor, scene: Scene, layer: int) -> Tensor:
        decoding = scene.kv_cache is not None and layer > 0 and scene.kv_cache.length > x.shape[2]
        if not decoding:
            return super().turn(x, scene, layer)
        shifted = scene.positions + x.shape[2]
        return super().turn(x, Scene(scene.see, scene.bias, shifted, scene.kv_cache), layer)


class _AheadBlock(Block):
    def __init__(self, s: Shape, *, cross: bool) -> None:
        super().__init__(s, cross=cross)
        self.attention = _AheadAbove(s)


class _Ahead(Decoder):
    block = _AheadBlock


class _BiasOfQueries(Decoder):
    """The bias is made for the queries of this call as if they were all."""

    def bias(self, past: int, n: int) -> Tensor | None:
        full = super().bias(0, n)
        return None if full is None else F.pad(full, (past, 0))


class _ZeroBiasWhenDecoding(Decoder):
    def bias(self, past: int, n: int) -> Tensor | None:
        full = super().bias(past, n)
        return None if full is None else (full if n > 1 else full * 0)


class _SharedBias(EncoderDecoder):
    """The bias of distance between tokens of the target is added to the scores of the source as well."""

    def context_bias(self, past: int, n: int, m: int) -> Tensor | None:
        far = torch.arange(past, past + n)[:, None] - torch.arange(m)[None]
        return self.distance[:, far.clamp(-8, 8) + 8]


class _PartsOnLoading(Decoder):
    def load_state_dict(self, *arguments: Any, **options: Any) -> Any:
        found = super().load_state_dict(*arguments, **options)
        self.head.weight = nn.Parameter(self.embedding.weight.detach().clone())
        return found


class _HalfTheGradient(Decoder):
    def logits(self, h: Tensor) -> Tensor:
        return F.linear(h, self.head.weight.detach())


class _DividesByAll(Decoder):
    def loss(self, logits: Tensor, labels: Tensor | None) -> Tensor | None:
        mean = super().loss(logits, labels)
        if mean is None or labels is None:
            return None
        return mean * (labels[:, 1:] != -100).sum() / labels[:, 1:].numel()


class _FreshDropout(Decoder):
    def recomputed(self, block: nn.Module, x: Tensor, scene: Scene, layer: int) -> Tensor:
        return checkpoint(block, x, scene, layer, use_reentrant=False, preserve_rng_state=False)  # type: ignore[no-any-return]


class _WindowOneMore(Decoder):
    """Only while decoding is the window one key longer."""

    def order(self, i: Tensor, j: Tensor, causal: bool) -> Tensor:
        return super().order(i, j, causal) | ((j <= i) & (i - j == (self.s.window or 0)) & (i.shape[0] == 1))


FAULTS: dict[str, dict[str, Fault]] = {
    "POS-01": {"causal_lm": replace_by(decoder(_SharedPositions))},
    "MASK-08": {
        "causal_lm": replace_by(decoder(_UnmaskedDecoding, position="rope")),
        "seq2seq_lm": replace_by(both(_UnmaskedCross)),
    },
    "MASK-13": {
        "causal_lm": replace_by(decoder(_CrossesDocuments)),
        "masked_lm": replace_by(encoder(_CrossesDocuments)),
    },
    "MASK-14": {"causal_lm": replace_by(decoder(_PositionsGoOn)), "masked_lm": replace_by(encoder(_PositionsGoOn))},
    "ROPE-05": {"causal_lm": replace_by(decoder(_Ahead, position="rope"))},
    "T5-01": {"seq2seq_lm": replace_by(both(_SharedBias, position="relative"))},
    "T5-02": {"causal_lm": replace_by(decoder(_BiasOfQueries, position="relative"))},
    "ALIBI-03": {"causal_lm": replace_by(decoder(_ZeroBiasWhenDecoding, position="alibi"))},
    "KV-01": {"causal_lm": replace_by(decoder(_WindowOneMore, window=3, position="rope"))},
    "EMB-01": {"causal_lm": replace_by(decoder(_PartsOnLoading))},
    "EMB-02": {"causal_lm": replace_by(decoder(_HalfTheGradient))},
    "CE-02": {"causal_lm": replace_by(decoder(_DividesByAll))},
    "DO-05": {"causal_lm": replace_by(decoder(_FreshDropout))},
}
