"""A small readable language model, stage by stage: a decoder, an encoder, or both. A fault replaces one stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True, kw_only=True)
class Shape:
    """position: ``learned``, ``rope``, ``alibi`` or ``relative``. norm: ``pre`` or ``post``. cross: a decoder reads."""

    vocabulary: int = 29
    width: int = 16
    heads: int = 4
    groups: int = 2
    layers: int = 2
    length: int = 72
    position: str = "learned"
    norm: str = "pre"
    window: int | None = None
    dropout: float = 0.1
    tied: bool = True
    causal: bool = True
    cross: bool = False


@dataclass
class Output:
    """Output of a call."""

    logits: Tensor
    past_key_values: KVCache | None = None
    loss: Tensor | None = None


class KVCache:
    """The keys and values of every layer so far, ``[B, G, n, d]``."""

    def __init__(self) -> None:
        self.layers: dict[int, tuple[Tensor, Tensor]] = {}

    @property
    def length(self) -> int:
        """Number of tokens seen."""
        return self.layers[0][0].shape[2] if self.layers else 0

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append to one layer; returns all of it."""
        if layer in self.layers:
            k, v = (torch.cat(pair, 2) for pair in zip(self.layers[layer], (k, v), strict=True))
        self.layers[layer] = k, v
        return k, v

    def reorder(self, index: Tensor) -> None:
        """Let row b go on as row ``index[b]``."""
        self.layers = {layer: (k[index], v[index]) for layer, (k, v) in self.layers.items()}


@dataclass(frozen=True)
class Scene:
    """Inputs shared by all layers of a call: visible pairs ``[B, 1, n, n_k]``, a bias ``[H, n, n_k]``, positions."""

    see: Tensor
    bias: Tensor | None
    positions: Tensor
    kv_cache: KVCache | None = None
    context: Tensor | None = None
    context_see: Tensor | None = None
    context_bias: Tensor | None = None


class Attention(nn.Module):
    """Grouped heads over ``x``, or over a context."""

    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.s, self.d = s, s.width // s.heads
        self.q = nn.Linear(s.width, s.width, bias=False)
        self.kv = nn.Linear(s.width, 2 * s.groups * self.d, bias=False)
        self.out = nn.Linear(s.width, s.width, bias=False)

    def forward(self, x: Tensor, source: Tensor, scene: Scene, layer: int | None) -> Tensor:
        """Attend from x to source. layer: the layer whose cache and positions are used; None for a context."""
        B, n, _ = x.shape
        q = self.q(x).view(B, n, -1, self.d).transpose(1, 2)  # [B, H, n, d]
        k, v = self.kv(source).view(B, source.shape[1], 2 * self.s.groups, self.d).transpose(1, 2).chunk(2, 1)
        if layer is not None and self.s.position == "rope":
            q, k = self.turn(q, scene, layer), self.turn(k, scene, layer)
        if layer is not None and scene.kv_cache is not None:
            k, v = scene.kv_cache.extend(layer, k, v)
        k, v = (t.repeat_interleave(self.s.heads // self.s.groups, 1) for t in (k, v))
        see, bias = (scene.see, scene.bias) if layer is not None else (scene.context_see, scene.context_bias)
        assert see is not None
        mask = see if bias is None else torch.where(see, bias.to(q.dtype), -torch.inf)
        o = F.scaled_dot_product_attention(q, k, v, mask, dropout_p=self.s.dropout if self.training else 0.0)
        merged: Tensor = self.out(o.transpose(1, 2).reshape(B, n, -1))
        return merged

    def turn(self, x: Tensor, scene: Scene, layer: int) -> Tensor:
        """Rotate pairs by the position."""
        w = 10000.0 ** (-torch.arange(0, self.d, 2, dtype=x.dtype) / self.d)
        angle = scene.positions[:, None, :, None].to(x.dtype) * w  # [B, 1, n, d/2]
        a, b = x.chunk(2, -1)
        return torch.cat((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1)


class Block(nn.Module):
    """Attention, attention over a context where there is one, and a feed-forward network, each with a residual."""

    def __init__(self, s: Shape, *, cross: bool) -> None:
        super().__init__()
        self.s = s
        self.attention = Attention(s)
        self.cross = Attention(s) if cross else None
        self.up, self.down = nn.Linear(s.width, 3 * s.width), nn.Linear(3 * s.width, s.width)
        self.norms = nn.ModuleList(nn.LayerNorm(s.width) for _ in range(3))
        self.drop = nn.Dropout(s.dropout)

    def forward(self, x: Tensor, scene: Scene, layer: int) -> Tensor:
        """Map [B, n, d] to [B, n, d]."""
        x = self.add(x, 0, lambda h: self.attention(h, h, scene, layer))
        cross = self.cross
        if cross is not None:
            x = self.add(x, 2, lambda h: cross(h, scene.context, scene, None))
        return self.add(x, 1, lambda h: self.down(F.gelu(self.up(h))))

    def add(self, x: Tensor, place: int, f: Any) -> Tensor:
        """Apply a residual branch and its norm."""
        norm = self.norms[place]
        if self.s.norm == "post":
            return norm(x + self.drop(f(x)))  # type: ignore[no-any-return]
        return x + self.drop(f(norm(x)))  # type: ignore[no-any-return]


class Model(nn.Module):
    """The whole: a decoder (causal), an encoder (not causal), or a decoder that reads an encoded source (cross)."""

    supports_gradient_checkpointing = True
    block = Block

    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.s, self.checkpointing = s, False
        self.embedding = nn.Embedding(s.vocabulary, s.width)
        self.place = nn.Embedding(s.length, s.width)
        self.distance = nn.Parameter(torch.randn(s.heads, 17))
        self.encoder = nn.ModuleList(self.block(s, cross=False) for _ in range(s.layers if s.cross else 0))
        self.blocks = nn.ModuleList(self.block(s, cross=s.cross) for _ in range(s.layers))
        self.norm = nn.LayerNorm(s.width)
        self.head = nn.Linear(s.width, s.vocabulary, bias=False)
        for p in self.parameters():
            if p.ndim > 1:
                nn.init.normal_(p, std=0.4)
        if s.tied:
            self.head.weight = self.embedding.weight

    def gradient_checkpointing_enable(self) -> None:
        """Compute activations a second time in the backward pass."""
        self.checkpointing = True

    def gradient_checkpointing_disable(self) -> None:
        """Keep activations."""
        self.checkpointing = False

    def run(
        self,
        ids: Tensor,
        mask: Tensor | None,
        kv_cache: KVCache | None,
        documents: Tensor | None = None,
        source: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Return the hidden states behind the last norm."""
        past = kv_cache.length if kv_cache is not None else 0
        positions = self.positions(ids, past, mask, documents)
        see = self.visible(ids, past, mask, documents, causal=self.s.causal)
        context, context_see = source if source is not None else (None, None)
        across = None if context is None else self.context_bias(past, ids.shape[1], context.shape[1])
        scene = Scene(see, self.bias(past, ids.shape[1]), positions, kv_cache, context, context_see, across)
        h: Tensor = self.norm(self.through(self.blocks, self.embed(ids, positions), scene))
        return h

    def through(self, blocks: nn.ModuleList, x: Tensor, scene: Scene) -> Tensor:
        """Apply layer after layer."""
        for layer, block in enumerate(blocks):
            x = self.recomputed(block, x, scene, layer) if self.checkpointing else block(x, scene, layer)
        return x

    def recomputed(self, block: nn.Module, x: Tensor, scene: Scene, layer: int) -> Tensor:
        """Run a layer under gradient checkpointing."""
        return checkpoint(block, x, scene, layer, use_reentrant=False)  # type: ignore[no-any-return]

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Embed tokens, and learned positions."""
        x: Tensor = self.embedding(ids)
        return x + self.place(positions) if self.s.position == "learned" else x

    def positions(self, ids: Tensor, past: int, mask: Tensor | None, documents: Tensor | None) -> Tensor:
        """Count positions from the first real token, or from the first of a document."""
        n = ids.shape[1]
        if documents is not None:
            place = torch.arange(n).expand_as(ids)
            starts = torch.where(F.pad(documents[:, 1:] != documents[:, :-1], (1, 0)), place, 0)
            return place - starts.cummax(-1).values
        if mask is not None:
            return (mask.cumsum(-1) - 1).clamp(min=0)[:, -n:].long()
        return torch.arange(past, past + n).expand_as(ids)

    def visible(self, ids: Tensor, past: int, mask: Tensor | None, documents: Tensor | None, *, causal: bool) -> Tensor:
        """Return the visible pairs, [B, 1, n, n_k]; each token sees itself, even as padding."""
        B, n = ids.shape
        i, j = torch.arange(past, past + n)[:, None], torch.arange(past + n)[None]
        see = self.order(i, j, causal).expand(B, 1, n, past + n)
        if mask is not None:
            see = see & mask.bool()[:, None, None, :]
        if documents is not None:
            see = see & (documents[:, None, :, None] == documents[:, None, None, :])
        return see | (i == j)

    def order(self, i: Tensor, j: Tensor, causal: bool) -> Tensor:
        """Return the pairs that causality and the window allow."""
        see = (j <= i) if causal else (j >= 0) & (i >= 0)
        return see if self.s.window is None else see & (i - j < self.s.window)

    def bias(self, past: int, n: int) -> Tensor | None:
        """Return the positional bias of the scores, [H, n, n_k]; None without one."""
        far = torch.arange(past, past + n)[:, None] - torch.arange(past + n)[None]
        if self.s.position == "alibi":
            slopes = 2.0 ** (-8.0 * torch.arange(1, self.s.heads + 1, dtype=self.head.weight.dtype) / self.s.heads)
            return -slopes[:, None, None] * far.abs()
        return self.distance[:, far.clamp(-8, 8) + 8] if self.s.position == "relative" else None

    def context_bias(self, past: int, n: int, m: int) -> Tensor | None:
        """Return the bias of the scores of a context: None, for there is no distance between two texts."""
        return None

    def logits(self, h: Tensor) -> Tensor:
        """Return vocabulary logits."""
        return F.linear(h, self.head.weight)

    def loss(self, logits: Tensor, labels: Tensor | None) -> Tensor | None:
        """Return the mean over all labels that are not −100; a decoder's are shifted by one."""
        if labels is None:
            return None
        if self.s.causal and not self.s.cross:
            logits, labels = logits[:, :-1], labels[:, 1:]
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


class Decoder(Model):
    """A decoder, or without a causal order an encoder."""

    def forward(
        self,
        ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: KVCache | None = None,
        use_cache: bool = False,
        labels: Tensor | None = None,
        documents: Tensor | None = None,
    ) -> Output:
        """Map ids [B, n] and attention_mask [B, past + n] to logits [B, n, V]."""
        kv_cache = KVCache() if use_cache and past_key_values is None else past_key_values
        logits = self.logits(self.run(ids, attention_mask, kv_cache, documents))
        return Output(logits, kv_cache, self.loss(logits, labels))


class EncoderDecoder(Model):
    """A decoder that reads an encoded source."""

    def forward(
        self,
        ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: KVCache | None = None,
        use_cache: bool = False,
        labels: Tensor | None = None,
        decoder_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
    ) -> Output:
        """Map source ids [B, m], attention_mask [B, m] and decoder_ids [B, n] to logits [B, n, V]."""
        assert decoder_ids is not None
        kv_cache = KVCache() if use_cache and past_key_values is None else past_key_values
        source = self.encode(ids, attention_mask)
        logits = self.logits(self.run(decoder_ids, decoder_attention_mask, kv_cache, source=source))
        return Output(logits, kv_cache, self.loss(logits, labels))

    def encode(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the source as the decoder reads it, and which of it is real, [B, 1, 1, m]."""
        positions = self.positions(ids, 0, mask, None)
        see = self.visible(ids, 0, mask, None, causal=False)
        scene = Scene(see, self.bias(0, ids.shape[1]), positions)
        real = torch.ones_like(ids) if mask is None else mask
        return self.through(self.encoder, self.embed(ids, positions), scene), self.seen(real)

    def seen(self, real: Tensor) -> Tensor:
        """Return the mask of source tokens that the decoder may see, [B, 1, 1, m]."""
        return real.bool()[:, None, None, :]
