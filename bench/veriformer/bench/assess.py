"""All that a target provides, operation by operation, held against what the specification predicts."""

from __future__ import annotations

from collections.abc import Iterator

from veriformer.bench.assessment import Assessment, uncountable_record
from veriformer.bench.document import Count
from veriformer.bench.measuring import FLOPS
from veriformer.bench.models.assess import assess as assess_model
from veriformer.bench.operations.catalogue import FAMILIES, PLAIN, names
from veriformer.bench.operations.family import Family
from veriformer.bench.targets import Target
from veriformer.bench.words import MODEL


def assess(target: Target, only: tuple[str, ...] = ()) -> Iterator[list[Count]]:
    """All counts of each operation that the target provides, one operation after the other."""
    for name in names():
        if target.operation(name) is None or (only and name not in only):
            continue
        if name in PLAIN:
            yield [uncountable_record(target, name, FLOPS, PLAIN[name])]
        counts = [one for family in FAMILIES if family.operation == name for one in _of(target, family)]
        if name == MODEL:
            counts = [*assess_model(target)]
        if counts:
            yield counts


def _of(target: Target, family: Family) -> Iterator[Count]:
    operations = [target.operation(name) for name in (family.operation, *family.beside)]
    provided = tuple(operation for operation in operations if operation is not None)
    if len(provided) == len(operations):
        for backward in (False, True):
            yield from Assessment(target, family, backward).counts(provided)
