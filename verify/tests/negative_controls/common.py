"""Shared parts of the tables of small faults: our right operations, known bugs, and three small changes of a tensor."""

from __future__ import annotations

from torch import Tensor

from veriformer.verify.mutants.combinators import Fault
from veriformer.verify.mutants.faults import FAULTS
from veriformer.verify.targets.impl import reference

GOOD = reference


def known(bug: str, operation: str) -> Fault:
    """The fault of a mutant, where it is what a law must see."""
    return FAULTS[bug][operation]


def mixed(x: Tensor) -> Tensor:
    """A little of everything in everything."""
    return x + 0.01 * x.sum()


def more(x: Tensor) -> Tensor:
    return x * 1.03125


def shifted(x: Tensor) -> Tensor:
    return x + 0.0625
