"""Transformer layer, and a stack of layers."""

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from veriformer.impl.layers.transformer_block import sublayer
from veriformer.impl.models.attention import CrossAttention, KeyValueCache, SelfAttention
from veriformer.impl.models.attention_mask import AttentionMask
from veriformer.impl.models.config import ModelConfig
from veriformer.impl.models.feed_forward import FeedForward, MixtureOfExperts
from veriformer.impl.models.kv_cache import KVCache
from veriformer.impl.models.norm import Norm
from veriformer.impl.models.position import RelativeBias, Rotation

Keys = tuple[Tensor, Tensor]


class Block(nn.Module):
    """Self-attention, attention over a context where there is one, and a feed-forward network. Equations 32–35.

    Each adds what it finds: pre-norm, x + α f(norm(x)), or post-norm, norm(x + α f(x)).
    """

    def __init__(self, config: ModelConfig, cross: bool = False) -> None:
        super().__init__()
        self.config = config
        self.attention_norm, self.attention = Norm(config), SelfAttention(config)
        if cross:
            self.cross_norm, self.cross = Norm(config), CrossAttention(config)
        self.network_norm = Norm(config)
        self.network = MixtureOfExperts(config) if config.num_experts else FeedForward(config)

    def forward(
        self,
        x: Tensor,
        mask: AttentionMask,
        rotation: Rotation | None = None,
        cache: KeyValueCache | None = None,
        keys: Keys | None = None,
        keys_mask: AttentionMask | None = None,
    ) -> Tensor:
        """Return `[B, n, d]` for `x [B, n, d]`; `keys` are those of the context."""
        x = self.add(x, self.attention_norm, self.attention, mask, rotation, cache)
        if keys is not None:
            x = self.add(x, self.cross_norm, self.cross, keys, keys_mask)
        return self.add(x, self.network_norm, self.network)

    def add(self, x: Tensor, norm: Norm, branch: nn.Module, *inputs: object) -> Tensor:
        """Join a branch to its residual (equation 4)."""
        c = self.config
        p = c.dropout if self.training else 0.0
        return sublayer(x, branch, norm, c.norm_placement, c.residual_scale, p, inputs)


class TransformerStack(nn.Module):
    """Blocks one after the other, and the last norm, which a post-norm model has inside its blocks."""

    def __init__(self, config: ModelConfig, num_layers: int, *, causal: bool, cross: bool = False) -> None:
        super().__init__()
        self.config, self.causal = config, causal
        self.blocks = nn.ModuleList(Block(config, cross) for _ in range(num_layers))
        self.norm = Norm(config) if config.norm_placement == "pre" else nn.Identity()
        self.relative_bias = RelativeBias(config, bidirectional=not causal) if config.position == "t5" else None

    def forward(
        self,
        x: Tensor,
        mask: AttentionMask,
        rotation: Rotation | None = None,
        cache: KVCache | None = None,
        context: list[Keys] | None = None,
        context_mask: AttentionMask | None = None,
    ) -> Tensor:
        """Return `[B, n, d]` for embedded tokens `x [B, n, d]`.

        With `activation_checkpointing`, backward computes each block again, from the same state of the random
        generators, so that the dropout masks are those of forward.
        """
        for i, block in enumerate(self.blocks):
            layer = None if cache is None else cache.layers[i]
            keys = None if context is None else context[i]
            inputs = (x, mask, rotation, layer, keys, context_mask)
            if self.config.activation_checkpointing and self.training:
                x = checkpoint(block, *inputs, use_reentrant=False)
            else:
                x = block(*inputs)
        return self.norm(x)  # type: ignore[no-any-return]
