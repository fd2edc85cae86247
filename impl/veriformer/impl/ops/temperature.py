"""Temperature: how sharply probabilities follow the scores."""

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.losses.targets import check_scores
from veriformer.impl.precision import upcast


def temperature_scale(logits: Tensor, temperature: float) -> Tensor:
    r"""Divide scores by a temperature and turn them into probabilities.

    $$p = \mathrm{softmax}(z / T)$$

    T below 1 sharpens towards the largest score, T above 1 flattens towards uniform; order and ties stay. The gradient
    is $p \odot (g - \sum_j p_j g_j) / T$. The maximum is taken out before the division, so neither the smallest T nor
    the largest score overflows.

    Shapes: `logits [..., V]` → the same. Dtypes: float64, float32, bfloat16, float16; halves are computed in float32,
    and float32 in float64 where T is not a normal number of float32. Raises `ValueError` for `V = 0` and for a
    temperature that is not above 0, `TypeError` for wrong types. Documents 000 and 001, section 11.2.
    """
    check_scores("logits", logits)
    T = checks.number("temperature", temperature)
    if T <= 0:
        checks.raise_for("temperature", "a number above 0", T, "for temperature 0 use greedy")
    x = upcast(logits)
    limits = torch.finfo(x.dtype)
    if not limits.tiny <= T <= limits.max:
        x = x.double()
    # Halved first: of two finite scores the difference may overflow, half of it does not.
    half = x / 2
    exponent = (half - half.detach().amax(-1, keepdim=True)) / T * 2
    return torch.softmax(exponent, -1).to(logits.dtype)
