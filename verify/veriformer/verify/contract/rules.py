"""Size rules: the sizes that an operation of a target accepts for an axis, with a text form that can be parsed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from veriformer.spec.operations import OPERATIONS
from veriformer.spec.operations.call import Tensor
from veriformer.verify.contract.feature import Arguments

_MULTIPLES = (128, 64, 32, 16, 8, 4, 2)
_FEW = 4
_LARGE = 64


@dataclass(frozen=True)
class SizeRule:
    """Sizes that an axis may have: the few listed, or multiples of ``multiple`` from ``smallest`` to ``largest``."""

    axis: str
    few: tuple[int, ...] = ()
    multiple: int = 1
    smallest: int = 1
    largest: int | None = None

    def __str__(self) -> str:
        if self.few:
            return f"{self.axis} ∈ {{{', '.join(map(str, self.few))}}}"
        words = [f"a multiple of {self.multiple}"] if self.multiple > 1 else []
        words += [f"at least {self.smallest}"] if self.smallest > self.multiple else []
        words += [f"at most {self.largest}"] if self.largest is not None else []
        return f"{self.axis} {', '.join(words)}"

    def admits(self, size: int) -> bool:
        """Return whether the axis may have this size."""
        if self.few:
            return size in self.few
        return size % self.multiple == 0 and self.smallest <= size <= (self.largest or size)

    def fitted(self, size: int) -> int:
        """Return an admitted size, a different one for different small sizes: one tile, two or three."""
        if self.few:
            return self.few[size % len(self.few)]
        if self.multiple == 1:
            return min(max(size, self.smallest), self.largest or max(size, self.smallest))
        tiles = 1 + size % (2 if self.multiple >= _LARGE else 3)
        first = -(-self.smallest // self.multiple)
        most = (self.largest or 10**9) // self.multiple
        return self.multiple * max(first, min(first + tiles - 1, most))


def read(text: str) -> SizeRule:
    """Parse the text form of a rule."""
    axis, _, said = text.partition(" ")
    few = re.search(r"{(.*)}", said)
    if few:
        return SizeRule(axis, tuple(int(word) for word in few[1].split(",")))
    numbers = {word: int(n) for word, n in re.findall(r"(multiple of|at least|at most) (\d+)", said)}
    multiple = numbers.get("multiple of", 1)
    return SizeRule(axis, (), multiple, numbers.get("at least", multiple), numbers.get("at most"))


def rule(axis: str, tried: Sequence[int], taken: Sequence[int]) -> SizeRule | None:
    """Return the rule that admits exactly ``taken`` among ``tried``; None if all or none were taken or no rule fits."""
    if not taken or len(taken) == len(tried):
        return None
    options = [SizeRule(axis, (), m, s, largest) for m in (1, *_MULTIPLES) for s, largest in _ends(m, tried, taken)]
    for option in options:
        if [size for size in tried if option.admits(size)] == list(taken):
            return option
    return SizeRule(axis, tuple(taken)) if len(taken) <= _FEW else None


def _ends(multiple: int, tried: Sequence[int], taken: Sequence[int]) -> list[tuple[int, int | None]]:
    """Return pairs (smallest, largest) to try for multiples of ``multiple``: no largest, or the last taken."""
    below = [size for size in tried if size % multiple == 0]
    smallest = multiple if not below or below[0] == taken[0] else taken[0]
    return [(smallest, None), (smallest, taken[-1])] if len(taken) > _FEW else [(smallest, None)]


def sizes(operation: str, arguments: Arguments) -> Mapping[str, tuple[int, ...]]:
    """Return the sizes of a call by axis, for the axes that size rules know."""
    record = OPERATIONS.get(operation)
    if record is None or not record.grown:
        return {}
    tensors = [name for name in record.of_kind(Tensor) if name in record.call and arguments.get(name) is not None]
    try:
        shapes = {name: _in_order(arguments[name].shape, arguments.get("dim", -1)) for name in tensors}
        found = record.sizes(shapes)
        return {axis: tuple(found[letter] for letter in letters) for axis, letters in record.grown.items()}
    except (KeyError, AttributeError, IndexError, TypeError):
        return {}


def _in_order(shape: Sequence[int], dim: int) -> tuple[int, ...]:
    """Return a shape with the axis of the operation last, where records have it."""
    shape = tuple(shape)
    return (*shape[:dim], *shape[dim:][1:], shape[dim])
