"""The masked language model's objective: how surprised the logits are by the tokens that were hidden."""

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.losses.cross_entropy import token_losses


def masked_lm_loss(logits: Tensor, labels: Tensor, *, ignore_index: int = -100) -> Tensor:
    r"""Average the negative log-likelihood over the masked positions.

    $$\mathcal{L} = -\frac1M \sum_{i \in \text{masked}} \log P(x_i \mid x_{\text{not masked}})$$

    `labels` hold the hidden tokens at masked positions and `ignore_index` elsewhere. Nothing is shifted: the logits at
    a position score the label of that position. With no masked position the loss and its gradient are 0.

    Shapes: `logits [..., V]`, `labels [...]` int64 → 0-d. Dtypes: float64, float32, bfloat16, float16; halves are
    computed in float32. Raises `ValueError` for shapes that do not match, `V = 0` and labels outside [0, V),
    `TypeError` for wrong dtypes. The objective of BERT (Devlin et al., 2019).
    """
    if isinstance(labels, Tensor) and labels.dtype != torch.int64:
        checks.raise_for("labels", "int64 classes", labels.dtype, "use labels.long()", TypeError)
    loss, count = token_losses(logits, labels, ignore_index, 0.0, "labels")
    return (loss.sum() / count.clamp(min=1)).to(logits.dtype)
