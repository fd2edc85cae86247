"""Top-p: sample from the nucleus, the smallest set of tokens that has enough of the probability."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from veriformer.impl import checks
from veriformer.impl.losses.targets import check_scores
from veriformer.impl.precision import upcast


def top_p_filter(logits: Tensor, p: float) -> Tensor:
    r"""Keep the smallest set of most probable tokens whose mass reaches `p`, and set the others to −∞.

    In the order of falling probability, of equal ones the lower index first, a token is kept while the mass before it
    is below `p`: the one that crosses the threshold stays, and the first always does. `p = 0` keeps one, `p = 1` all.

    Shapes: `logits [..., V]` → the same. Dtypes: float64, float32, bfloat16, float16; halves are summed in float32.
    Raises `ValueError` for `V = 0` and `p` outside [0, 1], `TypeError` for wrong types. Holtzman et al. (2020).
    """
    check_scores("logits", logits)
    p = checks.probability("p", p)
    if p == 1:
        return logits.clone()
    falling, order = torch.sort(logits.detach(), dim=-1, descending=True, stable=True)
    mass = torch.softmax(upcast(falling), -1).cumsum(-1)
    kept = pad(mass[..., :-1], (1, 0)) < p  # by the mass before each
    kept[..., 0] = True
    return logits.masked_fill(~torch.zeros_like(kept).scatter(-1, order, kept), -torch.inf)
