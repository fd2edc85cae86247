"""The k largest entries of each row, exactly k of them: of equal ones the lower index comes first."""

from torch import Tensor


def topk_mask(x: Tensor, k: int) -> Tensor:
    """Return a mask of `k` entries along the last axis of `x [..., V]`, of all of them where `k` is V or more."""
    k = min(k, x.shape[-1])
    kth = x.topk(k, -1).values[..., -1:]
    above, equal = x > kth, x == kth
    room = k - above.sum(-1, keepdim=True)
    return above | (equal & (equal.cumsum(-1) <= room))
