"""A generic mutant against the requirements of the operations that rest on its edit, until one kills it."""

from __future__ import annotations

from collections.abc import Iterator

from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.profiles import Profile
from veriformer.verify.judging.check import Check
from veriformer.verify.mutants.cell import Cell, run_cell
from veriformer.verify.mutants.generic.records import GenericMutant
from veriformer.verify.targets.error import TargetError
from veriformer.verify.targets.loading import load
from veriformer.verify.targets.target import Target

_DTYPES = ("fp32", "fp64", "bf16", "fp16")


def until_killed(mutant: GenericMutant, profile: Profile, seed: str) -> list[Cell]:
    """Return the cells up to the first kill, the nearest operation first, one dtype after the other."""
    name = f"generic:{mutant.identifier}"
    target = _loaded(name)
    found: list[Cell] = []
    for check, dtype in _turns(mutant):
        found.append(run_cell(name, target, check, dtype, profile, seed))
        if found[-1].killed:
            break
    return found


def _turns(mutant: GenericMutant) -> Iterator[tuple[Check, str]]:
    place = {operation: i for i, operation in enumerate(mutant.operations)}
    concerning = sorted((c for c in checks() if c.operation in place), key=lambda check: place[check.operation])
    for dtype in _DTYPES:
        yield from ((check, dtype) for check in concerning if dtype in check.dtypes)


def _loaded(name: str) -> Target | None:
    try:
        return load(name)
    except TargetError:  # the edit broke the import: nothing is easier to see
        return None
