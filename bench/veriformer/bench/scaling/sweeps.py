"""Sweeps: one size of one family of calls grows, all others are fixed."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from veriformer.bench.operations.catalogue import FAMILIES
from veriformer.bench.operations.family import Family
from veriformer.bench.scaling.prediction import predicted_costs
from veriformer.bench.timing.workloads import SIZES


@dataclass(frozen=True)
class Sweep:
    """letters: the sizes of the family that take the value of the one that grows; start: its first value."""

    operation: str
    case: str
    size: str
    letters: tuple[str, ...]
    backward: bool = False
    start: int = 16

    @property
    def family(self) -> Family:
        """The family of calls."""
        return next(f for f in FAMILIES if (f.operation, f.case) == (self.operation, self.case))

    @property
    def name(self) -> str:
        """Operation, passes, and the size that grows."""
        passes = "forward and backward" if self.backward else "forward"
        return f"{self.operation} over {self.size}, {passes}"

    def sizes(self, value: int) -> dict[str, int]:
        """All sizes of a call."""
        fixed = {letter: _SMALL.get(letter, SIZES[letter]) for letter in self.family.letters.split()}
        return {**fixed, **dict.fromkeys(self.letters, value)}

    def request(self, value: int) -> Mapping[str, object]:
        """Return the worker's request for this call."""
        return {
            "workload": f"{self.name} {value}",
            "family": [self.operation, self.case],
            "backward": self.backward,
            "sizes": self.sizes(value),
        }

    def costs(self, values: Sequence[int]) -> dict[str, list[float]]:
        """Return the predicted costs for each value: FLOPs, least bytes, and bytes of every step by itself."""
        return predicted_costs(self.family, [self.sizes(value) for value in values], backward=self.backward)


# What is fixed is small, so that the size that grows soon governs the work.
_SMALL = {"B": 1, "H": 2, "G": 1, "R": 2, "d": 64, "f": 128, "N": 256, "n": 64, "V": 512}
_DENSE = "a key head for each head"


def _both(operation: str, size: str, *letters: str, case: str = "all sizes", start: int = 16) -> list[Sweep]:
    known = letters or (size,)
    return [Sweep(operation, case, size, known, backward, start) for backward in (False, True)]


SWEEPS: tuple[Sweep, ...] = (
    *_both("attention", "n", "n_q", "n_k", case=_DENSE, start=32),
    *_both("attention", "d", case=_DENSE),
    *_both("attention", "H", case=_DENSE, start=2),
    *_both("linear_attention", "n", start=64),
    Sweep("cached_attention", "one new token", "t", ("t",), start=64),
    *_both("multi_head_attention", "n", start=32),
    *_both("feed_forward", "N"),
    *_both("feed_forward", "d"),
    *_both("swiglu", "N"),
    *_both("transformer_block", "n", start=32),
    *_both("transformer_block", "B", start=1),
    *_both("cross_entropy", "N"),
    *_both("cross_entropy", "V", "d", start=64),
    *_both("lm_head", "V", start=64),
    *_both("rms_norm", "N"),
    *_both("layer_norm", "N"),
    *_both("softmax", "d", start=64),
    *(Sweep(name, "a step", "P", ("P",), start=4096) for name in ("gradient_descent", "sgd_momentum", "adam", "adamw")),
    Sweep("clip_grad_norm", "all sizes", "N", ("N",)),
)


def chosen(patterns: Sequence[str]) -> list[Sweep]:
    """The sweeps that a pattern names, an operation or a glob; all of them where there is none."""
    return [s for s in SWEEPS if not patterns or any(s.operation == p or fnmatch.fnmatch(s.name, p) for p in patterns)]
