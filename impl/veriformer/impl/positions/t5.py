"""T5's buckets of relative positions."""

from bisect import bisect_left

import torch
from torch import Tensor

from veriformer.impl import checks


def t5_relative_position_bucket(
    relative_position: Tensor, *, bidirectional: bool = True, num_buckets: int = 32, max_distance: int = 128
) -> Tensor:
    r"""Sort relative positions, key − query, into buckets that grow with distance.

    With $b$ buckets in each direction, distances below $e = \lfloor b/2 \rfloor$ have one each; a distance $x \ge e$
    falls into

    $$\min\left(b - 1,\; e + \left\lfloor (b - e)\, \frac{\log(x/e)}{\log(M/e)} \right\rfloor\right)$$

    for `max_distance` $M$. The edges are found in whole numbers, so that no rounding moves a distance that lies on one.
    In two directions $b$ is half of `num_buckets`, keys behind the query first; in one, keys ahead are at distance 0.

    Shapes: `relative_position [...]` of any integer dtype → int64 of the same shape. Raises `ValueError` for fewer than
    4 buckets (2 in one direction), an odd number in two directions and `max_distance ≤ e`, `TypeError` for wrong types.
    Document 002, section 6.3.
    """
    r = checks.integers("relative_position", relative_position).long()
    buckets = _check_buckets(checks.flag("bidirectional", bidirectional), num_buckets)
    edges = _edges(buckets, checks.integer("max_distance", max_distance)).to(r.device)
    if not bidirectional:
        return torch.bucketize((-r).clamp(min=0), edges, right=True)
    return torch.bucketize(r.abs(), edges, right=True) + buckets * (r > 0)


def _check_buckets(bidirectional: bool, num_buckets: int) -> int:
    """Return the number of buckets in each direction."""
    total = checks.integer("num_buckets", num_buckets, minimum=4 if bidirectional else 2)
    if bidirectional and total % 2:
        checks.raise_for("num_buckets", "an even number for two directions", total, "half of them lie in each")
    return total // 2 if bidirectional else total


def _edges(buckets: int, max_distance: int) -> Tensor:
    """Return the smallest distance of each bucket but the first, `[buckets - 1]`.

    Bucket e + t begins where (x / e)^(b − e) reaches (M / e)^t: at the smallest whole x for which
    x^(b − e) ≥ M^t e^(b − e − t).
    """
    e = buckets // 2
    if max_distance <= e:
        checks.raise_for(
            "max_distance", f"more than the {e} distances with a bucket of their own", max_distance, "raise it"
        )
    many = buckets - e
    reached = [max_distance**t * e ** (many - t) for t in range(1, many)]
    far = [bisect_left(range(max_distance), x, key=lambda distance: distance**many) for x in reached]
    return torch.tensor([*range(1, e + 1), *far])
