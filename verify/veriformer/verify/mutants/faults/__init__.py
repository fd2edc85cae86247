"""The faults, one per operation concerned, by the bug that each repeats.

Each turns our operation into the wrong one (see ``combinators``). What the bug was, where, and where it is documented
stands in ``known_bugs.json`` under the same identifier.
"""

from __future__ import annotations

from veriformer.verify.mutants.combinators import Fault
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


def _merged() -> dict[str, dict[str, Fault]]:
    """Merge the faults of all modules: a bug may occur in operations of several of them."""
    merged: dict[str, dict[str, Fault]] = {}
    for module in _MODULES:
        for identifier, faults in module.FAULTS.items():
            merged.setdefault(identifier, {}).update(faults)
    return merged


FAULTS: dict[str, dict[str, Fault]] = _merged()
