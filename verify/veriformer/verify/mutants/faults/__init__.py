"""The faults, one kernel per operation concerned, by the bug that each repeats.

Every kernel is a correct base with one stage exchanged. What the bug was, where, and where it is documented stands in
``known_bugs.json`` under the same identifier.
"""

from __future__ import annotations

from veriformer.verify.mutants.faults import (
    attention,
    caches,
    decisions,
    dropout,
    flash,
    generation,
    heads,
    layers,
    masks,
    models,
    networks,
    positions,
    scores,
    training,
)
from veriformer.verify.targets.front import Kernel

_MODULES = (
    scores,
    layers,
    masks,
    attention,
    dropout,
    flash,
    heads,
    caches,
    training,
    decisions,
    generation,
    networks,
    positions,
    models,
)


def _merged() -> dict[str, dict[str, Kernel]]:
    """One bug may be repeated on operations of several modules."""
    merged: dict[str, dict[str, Kernel]] = {}
    for module in _MODULES:
        for identifier, kernels in module.KERNELS.items():
            merged.setdefault(identifier, {}).update(kernels)
    return merged


KERNELS: dict[str, dict[str, Kernel]] = _merged()
