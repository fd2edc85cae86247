"""All that targets provide, operation by operation, held against what the specification predicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from veriformer.bench.assessment import Assessment, Measured, differentiable, measure, uncountable_record
from veriformer.bench.document import Count
from veriformer.bench.measuring import Bench
from veriformer.bench.metered_costs import NotCountable
from veriformer.bench.models.assess import assess as assess_model
from veriformer.bench.operations.catalogue import FAMILIES, PLAIN, names
from veriformer.bench.operations.family import Family, Operation
from veriformer.bench.targets import Target
from veriformer.bench.words import MODEL


def assess(target: Target, only: tuple[str, ...] = ()) -> Iterator[list[Count]]:
    """Yield all counts of each operation that the target provides, one operation after the other."""
    for name in names():
        if not only or name in only:
            yield from (counts for counts in together((target,), name) if counts)


def shared(targets: Sequence[Target], name: str) -> list[tuple[Target, ...]]:
    """Return the targets that provide an operation, those together whose calls of it run the same objects."""
    found: dict[tuple[int, ...], list[Target]] = {}
    beside = [other for family in FAMILIES if family.operation == name for other in family.beside]
    for target in targets:
        if target.operation(name) is not None:
            found.setdefault(tuple(id(target.operation(each)) for each in (name, *beside)), []).append(target)
    return [tuple(some) for some in found.values()]


def together(targets: Sequence[Target], name: str) -> list[list[Count]]:
    """Return all counts of one operation for each target; they share it, so that it is counted once."""
    first = targets[0]
    if first.operation(name) is None:
        return [[] for _ in targets]
    if name == MODEL:
        return [list(assess_model(target)) for target in targets]
    measured = [one for family in FAMILIES if family.operation == name for one in _of(first, family)]
    plain = [[uncountable_record(target, name, PLAIN[name])] if name in PLAIN else [] for target in targets]
    return [
        [*counts, *(one for given in measured for one in _judged(target, *given))]
        for target, counts in zip(targets, plain, strict=True)
    ]


def _of(target: Target, family: Family) -> Iterator[tuple[Family, bool, Measured | NotCountable]]:
    """Yield a family in one pass, and in both where there is a gradient."""
    operations: list[Operation] = []
    for name in (family.operation, *family.beside):
        operation = target.operation(name)
        if operation is None:
            return
        operations.append(operation)
    for backward in (False, True):
        bench = Bench(family, tuple(operations), backward)
        if backward and not differentiable(bench):
            return
        try:
            yield family, backward, measure(bench)
        except NotCountable as error:
            yield family, backward, error


def _judged(target: Target, family: Family, backward: bool, measured: Measured | NotCountable) -> Iterator[Count]:
    assessment = Assessment(target, family, backward)
    if isinstance(measured, NotCountable):
        yield assessment.uncountable(measured)
    else:
        yield from assessment.judge(measured)
