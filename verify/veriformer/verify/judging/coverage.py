"""Coverage of large sizes in an example: alone, in pairs, with an option, with strides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import torch

from veriformer.verify.contract.signatures import OPTIONAL

LARGE = 64
"""Size above which an axis counts as large, the width of most heads and tiles."""


class Coverage:
    """Coverage of one example, each pair counted once; counts: those of the whole row, by words such as "n_k > 64"."""

    def __init__(self, counts: Counter[str]) -> None:
        self.counts = counts
        self._axes: list[str] = []
        self._told: set[str] = set()

    def sizes(self, found: Mapping[str, int]) -> None:
        """Count the large axes, and their pairs, among sizes that were drawn together."""
        self._axes = sorted(f"{name} > {LARGE}" for name, size in found.items() if size > LARGE)
        self._tell(*self._axes, *(" and ".join(pair) for pair in combinations(self._axes, 2)))

    def call(self, operation: str, arguments: Mapping[str, Any]) -> None:
        """Count each large axis with the options and the strides of a call."""
        if not self._axes:
            return
        given = [name for name in OPTIONAL.get(operation, {}) if arguments.get(name) is not None]
        tensors = (value for value in arguments.values() if isinstance(value, torch.Tensor))
        given += ["strides"] if any(not x.is_contiguous() for x in tensors) else []
        self._tell(*(f"{axis} and {name}" for axis in self._axes for name in given))

    def _tell(self, *covered: str) -> None:
        self.counts.update(set(covered) - self._told)
        self._told.update(covered)
