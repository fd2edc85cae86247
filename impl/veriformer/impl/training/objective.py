"""Training objective: the sum of the losses of a batch, as a module, so that it can be distributed."""

from torch import Tensor, nn

from veriformer.impl.losses.linear_cross_entropy import linear_cross_entropy
from veriformer.impl.models.decoder import Decoder
from veriformer.impl.training.packing import IGNORED, PackedRows


class Objective(nn.Module):
    """Σ −log p(label) over the tokens of a batch, its logits never all at once (equations 38 and 40)."""

    def __init__(self, model: Decoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, labels: Tensor, documents: Tensor | None = None) -> Tensor:
        """Return the sum of the losses, 0-d, in float32 at least."""
        head = self.model.head
        h = head.head_input(self.model.hidden_states(ids, documents=documents))
        weight = self.model.embedding.tokens.weight if head.weight is None else head.weight
        return linear_cross_entropy(h, weight, labels, bias=head.bias, ignore_index=IGNORED, reduction="sum")


def count(rows: PackedRows) -> int:
    """Return how many tokens of a batch are predicted."""
    return int((rows.labels != IGNORED).sum())
