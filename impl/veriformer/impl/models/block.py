"""One layer of a Transformer, and a stack of them."""

from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from veriformer.impl.models.attention import CrossAttention, KeyValueCache, SelfAttention
from veriformer.impl.models.config import ModelConfig
from veriformer.impl.models.feed_forward import FeedForward, MixtureOfExperts
from veriformer.impl.models.memory import Memory
from veriformer.impl.models.norm import Norm
from veriformer.impl.models.position import RelativeBias
from veriformer.impl.models.sight import Sight

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
        sight: Sight,
        cache: KeyValueCache | None = None,
        keys: Keys | None = None,
        keys_sight: Sight | None = None,
    ) -> Tensor:
        """Return `[B, n, d]` for `x [B, n, d]`; `keys` are those of the context."""
        pre = self.config.norm_order == "pre"
        x = self.add(x, self.attention(self.attention_norm(x) if pre else x, sight, cache), self.attention_norm)
        if keys is not None:
            x = self.add(x, self.cross(self.cross_norm(x) if pre else x, keys, keys_sight), self.cross_norm)
        return self.add(x, self.network(self.network_norm(x) if pre else x), self.network_norm)

    def add(self, x: Tensor, fx: Tensor, norm: Norm) -> Tensor:
        """Join a branch to its residual (equation 4)."""
        if self.training and self.config.dropout:
            fx = F.dropout(fx, self.config.dropout)
        if self.config.residual_scale != 1:
            fx = fx * self.config.residual_scale
        return x + fx if self.config.norm_order == "pre" else norm(x + fx)


class Stack(nn.Module):
    """Blocks one after the other, and the last norm, which a post-norm model has inside its blocks."""

    def __init__(self, config: ModelConfig, num_layers: int, *, causal: bool, cross: bool = False) -> None:
        super().__init__()
        self.config, self.causal = config, causal
        self.blocks = nn.ModuleList(Block(config, cross) for _ in range(num_layers))
        self.norm = Norm(config) if config.norm_order == "pre" else nn.Identity()
        self.relative_bias = RelativeBias(config, bidirectional=not causal) if config.position == "t5" else None

    def forward(
        self,
        x: Tensor,
        sight: Sight,
        memory: Memory | None = None,
        context: list[Keys] | None = None,
        context_sight: Sight | None = None,
    ) -> Tensor:
        """Return `[B, n, d]` for embedded tokens `x [B, n, d]`.

        With `checkpointing`, backward computes each block again, from the same state of the random generators, so
        that the dropout masks are those of forward.
        """
        for i, block in enumerate(self.blocks):
            cache = None if memory is None else memory.layers[i]
            keys = None if context is None else context[i]
            if self.config.checkpointing and self.training:
                x = checkpoint(block, x, sight, cache, keys, context_sight, use_reentrant=False)
            else:
                x = block(x, sight, cache, keys, context_sight)
        return self.norm(x)  # type: ignore[no-any-return]
