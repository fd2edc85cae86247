"""Layouts: equal values under other strides."""

from __future__ import annotations

from functools import cache

import hypothesis.strategies as st
import torch

_HOW = ("contiguous", "transposed", "sliced", "contiguous", "transposed", "sliced", "expanded")


class Layout:
    """Memory layout of a tensor: transposed storage, every second element of a wider one, or one row for all."""

    def __init__(self, how: str, axis: int) -> None:
        self.how = how
        self.axis = axis

    def __repr__(self) -> str:
        return f"Layout({self.how!r}, {self.axis})"

    def of(self, x: torch.Tensor) -> torch.Tensor:
        """Return the tensor under this layout. If expanded (stride 0), values along the axis become the first's."""
        if x.ndim == 0 or x.numel() == 0:
            return x
        axis = self.axis % x.ndim
        if self.how == "transposed":
            backwards = tuple(range(x.ndim))[::-1]
            return x.permute(backwards).contiguous().permute(backwards)
        if self.how == "sliced":
            return x.repeat_interleave(2, dim=axis)[(slice(None),) * axis + (slice(None, None, 2),)]
        if self.how == "expanded":
            return x.narrow(axis, 0, 1).expand(x.shape)
        return x.contiguous()


@cache
def layouts(*, expanded: bool = True) -> st.SearchStrategy[Layout]:
    """Return a strategy for layouts; shrinks to contiguous. ``expanded=False`` excludes changed values."""
    return st.builds(Layout, st.sampled_from(_HOW if expanded else _HOW[:-1]), st.integers(0, 3))
