"""Metered calls of a family: on fake tensors where it can run so, else on real ones of the same sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from veriformer.bench.meter import Meter, Phase, size_of
from veriformer.bench.metered_costs import NotCountable
from veriformer.bench.operations.family import (
    ALLOCATIONS,
    BETWEEN,
    CALLS,
    EXTRA,
    FLOPS,
    FORWARD,
    KEPT,
    MOVED,
    PEAK,
    RECOMPUTED,
    WAITS,
    Call,
    Family,
)


@dataclass
class Bench:
    """Runs the calls of one family on one target.

    modelled, uncounted: operators whose FLOPs come from a formula for a whole kernel, or could not be had at all.
    """

    family: Family
    operations: tuple[Callable[..., Any], ...]
    backward: bool
    real: bool = False
    modelled: set[str] = field(default_factory=set)
    uncounted: set[str] = field(default_factory=set)
    _known: dict[tuple[tuple[str, int], ...], dict[str, int]] = field(default_factory=dict)

    def count(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Count all quantities of one call. Raises NotCountable, with what the call raised, where it cannot be made."""
        key = tuple(sizes.items())
        if key not in self._known:
            self._known[key] = self._on_its_tensors(sizes)
        return self._known[key]

    def _on_its_tensors(self, sizes: Mapping[str, int]) -> dict[str, int]:
        if not self.real and not self.family.values:
            try:
                return self._count(sizes)
            except Exception:  # what asks for values cannot run without memory
                self.real = True
        try:
            return self._count(sizes)
        except Exception as error:
            said = str(error).strip().splitlines()[:1]
            raise NotCountable(f"the call raised {type(error).__name__}: {' '.join(said)[:160]}") from error

    def _count(self, sizes: Mapping[str, int]) -> dict[str, int]:
        from torch._subclasses.fake_tensor import FakeTensorMode  # brings SymPy, which what only times does without

        real = self.real or self.family.values
        with torch.random.fork_rng(devices=[]), nullcontext() if real else FakeTensorMode():
            torch.manual_seed(0)
            call = self.family.call(*self.operations, sizes)
            leaves = [x for x in call.tensors if x.is_floating_point()] if self.backward else []
            for leaf in leaves:
                leaf.requires_grad_()
            meter = Meter(call.tensors)
            results = _run(call, leaves, meter)
            kept = meter.live - meter.given
            held = _distinct(results, call)
            self.modelled |= meter.modelled
            self.uncounted |= meter.uncounted
            return _counts(meter, size_of(held), kept)


def _run(call: Call, leaves: list[torch.Tensor], meter: Meter) -> Any:
    with meter:
        result = call.run()
        if not leaves:
            return result
        out = [x for x in tree_leaves(result) if isinstance(x, torch.Tensor) and x.requires_grad]
        if not out:
            raise NoGradient("no result has a gradient")
        with meter.paused():
            cotangents = [torch.ones_like(x) for x in out]
        return result, torch.autograd.grad(out, leaves, cotangents, allow_unused=True), cotangents


class NoGradient(Exception):
    """The call gives nothing that could be differentiated."""


def _distinct(results: Any, call: Call) -> list[torch.Tensor]:
    """Return the results in memory of their own."""
    given = {x.untyped_storage()._cdata for x in call.tensors}
    made = [x for x in tree_leaves(results) if isinstance(x, torch.Tensor)]
    return [x for x in made if x.untyped_storage()._cdata not in given]


def _counts(meter: Meter, results: int, kept: int) -> dict[str, int]:
    counts = {
        FLOPS: meter.flops.total(),
        MOVED: meter.moved.total(),
        PEAK: meter.peak,
        EXTRA: max(0, meter.peak - meter.given - results),
        KEPT: kept,
        CALLS: meter.calls.total(),
        ALLOCATIONS: meter.allocations,
    }
    if meter.waits:
        counts[WAITS] = meter.waits
    if again := meter.flops_of[Phase.RECOMPUTED]:
        counts |= {FORWARD: meter.flops_of[Phase.FORWARD], RECOMPUTED: again, BETWEEN: meter.between}
    for quantity, by_operator in ((FLOPS, meter.flops), (MOVED, meter.moved), (CALLS, meter.calls)):
        counts |= {f"{quantity} by {name}": number for name, number in by_operator.items()}
    return counts


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress warnings of counted code."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
