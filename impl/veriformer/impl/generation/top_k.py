"""Top-k: sample among the k most probable tokens only."""

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.generation.topk_mask import topk_mask
from veriformer.impl.losses.targets import check_scores


def top_k_filter(logits: Tensor, k: int) -> Tensor:
    """Keep the `k` largest scores of each row, and set the others to −∞.

    Exactly `k` survive, of equal scores those of lower index; `k` above V keeps all. Softmax of the result is the
    distribution renormalised over what was kept.

    Shapes: `logits [..., V]` → the same. Dtypes: float64, float32, bfloat16, float16. Raises `ValueError` for `V = 0`
    and `k < 1`, `TypeError` for wrong types. Document 003, section 12.
    """
    check_scores("logits", logits)
    k = checks.integer("k", k, minimum=1)
    return logits.masked_fill(~topk_mask(logits, k), -torch.inf)
