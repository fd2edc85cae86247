"""Calibration: whether a model is as often right as it is sure."""

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.losses.targets import check_classes, check_probabilities, check_scores
from veriformer.impl.precision import upcast


def expected_calibration_error(probs: Tensor, target: Tensor, *, num_bins: int = 15) -> Tensor:
    r"""Average the distance between accuracy and confidence over bins of equal width.

    $$\mathrm{ECE} = \sum_m \frac{|B_m|}{n}\, |\mathrm{acc}(B_m) - \mathrm{conf}(B_m)|
      = \frac1n \sum_m \Big| \sum_{i \in B_m} (c_i - p_i) \Big|$$

    Confidence $p_i$ is a row's largest probability; $c_i$ is 1 where its class, the lowest of equals, is the target.
    The second form divides by no bin's size, which may be 0. Bins are $(\mathrm{lo}, \mathrm{hi}]$, and the first also
    holds 0; the edges k/M are rounded to the dtype of `probs`. Rows need not sum to 1.

    Shapes: `probs [..., V]`, `target [...]` int64 → 0-d. Dtypes: float64, float32, bfloat16, float16; halves are summed
    in float32. Raises `ValueError` for no sample, `V = 0`, shapes that do not match, probabilities outside [0, 1],
    classes outside [0, V) and fewer than one bin, `TypeError` for wrong dtypes. Documents 000 and 001, section
    11.2; Naeini et al. (2015).
    """
    M = checks.integer("num_bins", num_bins, minimum=1)
    check_scores("probs", probs)
    check_classes("target", target, probs, of="probs")
    if target.numel() == 0:
        checks.raise_for("target", "at least one sample", "none", "the mean over no sample has no value")
    check_probabilities("probs", probs)
    confidence, chosen = probs.amax(-1).flatten(), probs.argmax(-1)
    inner = (torch.arange(1, M, dtype=torch.float64, device=probs.device) / M).to(probs.dtype)
    bin = torch.bucketize(confidence.detach(), inner)  # how many inner edges lie strictly below
    hit, confidence = (chosen == target).flatten(), upcast(confidence)
    surplus = hit.to(confidence.dtype) - confidence
    gaps = surplus.new_zeros(M).index_add(0, bin, surplus)
    return (gaps.abs().sum() / target.numel()).to(probs.dtype)
