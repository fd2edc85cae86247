"""Greedy decoding: the most probable token."""

from torch import Tensor

from veriformer.impl.losses.targets import check_scores


def greedy(logits: Tensor) -> Tensor:
    r"""Choose the largest score of each row, $\arg\max_i z_i$; of equal ones the lower index.

    Shapes: `logits [..., V]` → int64 `[...]`. Dtypes: float64, float32, bfloat16, float16. Raises `ValueError` for
    `V = 0`, `TypeError` if `logits` is not a floating-point tensor. Document 003, section 12.
    """
    check_scores("logits", logits)
    return logits.argmax(-1)
