"""Findings of what was measured and not judged: a coarser format than that of the input, and global state changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from veriformer.spec.requirement import Weight
from veriformer.verify.contract import dtypes
from veriformer.verify.results.domain import Domain
from veriformer.verify.results.finding import Finding


def imprecise(domain: Mapping[str, Domain]) -> Iterator[Finding]:
    """Yield a finding for each format coarser than its input in which an operation computes."""
    for operation, known in domain.items():
        for computed in dict.fromkeys(known.precision.values()):
            given = tuple(name for name, coarser in known.precision.items() if coarser == computed)
            what = f"computed in {_full(computed)} for {' and '.join(map(_full, given))} input"
            yield _finding(operation, what, "compute in the format of the input", Weight.IMPRECISE, given)


def changes(global_state: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    """Yield a finding for each operation, or for the loading of the target, that changes the process's global state."""
    for operation, changed in global_state.items():
        if changed:
            what = f"changes global state: {', '.join(changed)}"
            yield _finding(operation, what, "leave it as it was found, or put it back before returning", Weight.WRONG)


def _full(dtype: str) -> str:
    return str(dtypes.TORCH[dtype]).removeprefix("torch.")


def _finding(operation: str, what: str, fix: str, weight: Weight, given: tuple[str, ...] = ()) -> Finding:
    identifier = hashlib.sha256(f"{operation}|{what}".encode()).hexdigest()[:8]
    told = f"{operation}: {what}"
    return Finding(id=identifier, weight=weight, operation=operation, what=told, dtypes=given, confirmed=True, fix=fix)
