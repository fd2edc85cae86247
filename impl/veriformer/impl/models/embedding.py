"""From ids to vectors."""

from torch import Tensor, nn

from veriformer.impl import checks
from veriformer.impl.layers.dropout import drop
from veriformer.impl.layers.token_embedding import look_up
from veriformer.impl.models.config import ModelConfig
from veriformer.impl.models.norm import Norm
from veriformer.impl.positions.sinusoidal import encode


class Table(nn.Embedding):
    """A vector for each id, looked up as `token_embedding` does."""

    def forward(self, ids: Tensor) -> Tensor:
        """Return `[..., d]` for `ids [...]`."""
        return look_up(ids, self.weight)


class Embedding(nn.Module):
    """Tokens, and whatever of positions and segments is added to them. Equation 39."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.tokens = Table(config.vocab_size, config.d_model)
        self.positions = Table(config.max_length, config.d_model) if config.position == "learned" else None
        self.segments = Table(config.num_segments, config.d_model) if config.num_segments else None
        self.norm = Norm(config) if config.embedding_norm else None

    def forward(self, ids: Tensor, positions: Tensor, segments: Tensor | None = None) -> Tensor:
        """Return `[B, n, d]` for `ids [B, n]`, `positions [B or 1, n]` and `segments [B, n]`, by default 0."""
        x = self.tokens(ids)
        if self.positions is not None:
            x = x + self.positions(positions)
        elif self.config.position == "sinusoidal":
            x = x + encode(positions, self.config.d_model, 10000.0, x.dtype)
        if self.segments is not None:
            x = x + (self.segments.weight[0] if segments is None else self.segments(segments))
        if self.norm is not None:
            x = self.norm(x)
        return drop(x, self.config.dropout if self.training else 0.0, None)


def check_call(
    config: ModelConfig, ids: Tensor, attention_mask: Tensor | None, documents: Tensor | None = None, past: int = 0
) -> None:
    """Refuse ids, masks and documents that do not fit together, or do not fit the model."""
    if checks.integers("ids", ids).ndim != 2 or ids.numel() == 0:
        checks.raise_for(
            "ids", "shape [B, n] with at least one token", f"shape {tuple(ids.shape)}", "add the batch axis"
        )
    B, n = ids.shape
    if config.position == "learned" and past + n > config.max_length:
        got = f"{past} before and {n} new"
        checks.raise_for("ids", f"at most max_length={config.max_length} tokens", got, "learned positions end there")
    if checks.can_read_values(ids) and ids.device.type == "cpu":
        lowest, highest = (int(x) for x in ids.aminmax())
        if lowest < 0 or highest >= config.vocab_size:
            checks.raise_for("ids", f"ids in [0, {config.vocab_size})", f"{lowest} to {highest}", "check the tokenizer")
    for name, x, shape in (("attention_mask", attention_mask, (B, past + n)), ("documents", documents, (B, n))):
        if x is not None and (not isinstance(x, Tensor) or x.shape != shape):
            got = f"shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
            checks.raise_for(
                name, f"a tensor of shape {list(shape)}", got, "give one entry to each token, past ones too"
            )
    if attention_mask is not None and documents is not None:
        checks.raise_for("documents", "no attention_mask beside it", "both", "give padding a document of its own")
    if documents is not None and past:
        checks.raise_for("documents", "no cache beside it", f"{past} cached tokens", "packing is for training")
