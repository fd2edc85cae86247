"""Perplexity: the number of equally likely choices that would surprise as much."""

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.losses.cross_entropy import token_losses


def perplexity(logits: Tensor, target: Tensor, *, ignore_index: int = -100) -> Tensor:
    r"""Exponentiate the mean negative log-likelihood over all counted tokens.

    $$\mathrm{PPL} = \exp\Big(-\frac{1}{N} \sum_t \log p(w_t \mid w_{<t})\Big)$$

    The mean runs over the tokens of all axes at once, and nothing is shifted: `logits[..., t, :]` scores
    `target[..., t]`. Without any counted token it is 1.

    Shapes: `logits [..., V]`, `target [...]` int64 → 0-d. Dtypes: float64, float32, bfloat16, float16; halves are
    computed in float32 up to the last rounding. Raises as `cross_entropy` does, and `TypeError` for targets that are
    not int64. Equation 41.
    """
    if isinstance(target, Tensor) and target.dtype != torch.int64:
        checks.raise_for("target", "int64 classes", target.dtype, "use target.long()", TypeError)
    loss, count = token_losses(logits, target, ignore_index, 0.0)
    return (loss.sum() / count.clamp(min=1)).exp().to(logits.dtype)
