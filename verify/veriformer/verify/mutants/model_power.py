"""The power of the laws of whole models: the smallest planted deviation that is found in 95 % of tries.

    python -m veriformer.verify.mutants.model_power [LAW…]

A deviation is relative: so much of another token's embedding, which may not be seen, is added to a token's, or what is
computed with a cache is grown by so much. It is planted before the first layer. A try is a row of the profile quick.
Prints a table: by law, the dtype of the parameters and what the model computes in inside.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.mutants.staged_reference.model import Decoder, Scene, Shape
from veriformer.verify.mutants.staged_reference.narrow import Autocast, InHalf
from veriformer.verify.results import Status
from veriformer.verify.targets.loading import wrap

TRIES, MISSES = 20, 1
"""Tries of one deviation, and how many may miss it: 95 % find it."""

FACTOR = 64.0
"""Ratio of successive deviations."""

SMALLEST = 1e-12
"""No smaller deviation is tried."""

INNER: Mapping[str, tuple[str, type | None, torch.dtype | None]] = {
    "fp64": ("fp64", None, None),
    "fp32": ("fp32", None, None),
    "fp32, autocast to fp16": ("fp32", Autocast, torch.float16),
    "fp32, autocast to bf16": ("fp32", Autocast, torch.bfloat16),
    "fp64, layers in bf16": ("fp64", InHalf, torch.bfloat16),
}
"""By name: the dtype of the parameters, and how another is used inside."""


class Planted(Decoder):
    """Decoder with a small error."""

    size = 0.0

    def through(self, blocks: nn.ModuleList, x: Tensor, scene: Scene) -> Tensor:
        """Run all layers, on the input with the error added."""
        return super().through(blocks, x + self.size * self.added(x, scene), scene)

    def added(self, x: Tensor, scene: Scene) -> Tensor:
        """Return the unwanted addend to the values of a layer."""
        raise NotImplementedError


class _NextToken(Planted):
    def added(self, x: Tensor, scene: Scene) -> Tensor:
        return torch.cat((x[:, 1:], torch.zeros_like(x[:, :1])), 1)


class _AllSoFar(Planted):
    def added(self, x: Tensor, scene: Scene) -> Tensor:
        return x.cumsum(1) / torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None]


class _All(Planted):
    def added(self, x: Tensor, scene: Scene) -> Tensor:
        return x.mean(1, keepdim=True).expand_as(x)


class _FirstToken(Planted):
    def added(self, x: Tensor, scene: Scene) -> Tensor:
        return x[:, :1].expand_as(x)


class _FirstRow(Planted):
    def added(self, x: Tensor, scene: Scene) -> Tensor:
        return x[:1].expand_as(x)


class _Cached(Planted):
    def added(self, x: Tensor, scene: Scene) -> Tensor:
        """Return x in one channel only, behind a cache: a norm would undo a factor common to all channels."""
        kept = torch.zeros_like(x)
        if scene.see.shape[-1] > scene.see.shape[-2]:
            kept[..., 0] = x[..., 0]
        return kept


LAWS: Mapping[str, tuple[type[Planted], str]] = {
    "causality": (_NextToken, "causality"),
    "padding": (_All, "padding_content"),
    "positions of padding": (_AllSoFar, "left_padding"),
    "packing": (_FirstToken, "packing"),
    "batch": (_FirstRow, "batch"),
    "cache": (_Cached, "cache_split"),
}
"""By name: the fault, and the requirement of a causal_lm that it breaks."""


def target(fault: type[Planted], inner: str, size: float) -> Any:
    """Return an implementation with a deviation of this size."""
    _, wrapper, dtype = INNER[inner]
    bases = (fault,) if wrapper is None else (wrapper, fault)
    kind = type("Small", bases, {"size": size} if dtype is None else {"size": size, "inner": dtype})
    claims = {"dtypes": [INNER[inner][0]]}
    return wrap(SimpleNamespace(causal_lm=lambda: kind(Shape(position="rope")), CLAIMS=claims))


def is_found(law: str, inner: str, size: float) -> bool:
    """Return whether 95 % of tries find a deviation of this size."""
    fault, requirement = LAWS[law]
    (check,) = (one for one in checks() if one.requirement.slug == f"causal_lm.{requirement}")
    row, profile = CheckRun(check, INNER[inner][0]), replace(PROFILES["quick"], shrinks=0)
    implementation, misses = target(fault, inner, size), 0
    for number in range(TRIES):
        result = run_check(row, implementation, profile, f"power {number}", {})
        misses += result.status is not Status.FAIL
        if misses > MISSES:
            return False
    return True


def smallest(law: str, inner: str) -> float | None:
    """Return the smallest deviation found, from 1 downwards in steps of FACTOR; none where not even that is."""
    size, last = 1.0, None
    while size > SMALLEST and is_found(law, inner, size):
        size, last = size / FACTOR, size
    return last


def table(laws: list[str]) -> Iterator[str]:
    """Yield the lines of the table, as they come."""
    for law in laws or LAWS:
        for inner in INNER:
            size = smallest(law, inner)
            yield f"{law:22}{inner:26}{'not found' if size is None else f'{size:.1e}'}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    for line in table(sys.argv[1:]):
        print(line, flush=True)
