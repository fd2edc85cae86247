"""The kill matrix: every mutant against every requirement of its operations, and violations of correct variants.

``cells`` runs one member and is the unit of parallel work; ``KillMatrix`` puts the cells of any number of members
together, in whatever order they come. Every row stands for itself: nothing is blocked by a prerequisite that fails.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import resources
from typing import Any
from zlib import crc32

from veriformer.verify.catalogue.selection import checks
from veriformer.verify.contract import dtypes
from veriformer.verify.engine.profiles import PROFILES, Profile
from veriformer.verify.judging.check import Check
from veriformer.verify.mutants import MUTANTS, SABOTAGES, VARIANTS, Mutant, Sabotage, Variant
from veriformer.verify.mutants.cell import Cell, run_cell
from veriformer.verify.mutants.generic import GenericMutant, generic_mutants, survivors
from veriformer.verify.mutants.generic.mutation_run import until_killed
from veriformer.verify.mutants.records import known_bugs
from veriformer.verify.mutants.sabotage import must_fail
from veriformer.verify.results import Shard, Status
from veriformer.verify.targets.loading import load

SCHEMA_NAME = "veriformer/mutants/1"
MATRIX_PROFILE = replace(PROFILES["quick"], shrinks=0)
"""The quick profile without shrinking: how a mutant dies is of interest here, not its smallest counterexample."""

Member = Mutant | Variant | Sabotage | GenericMutant


def cells(member: Member, profile: Profile = MATRIX_PROFILE, seed: str = "slug") -> list[Cell]:
    """Run the requirements of one member's operations.

    Of a mutant, each is run in one dtype, the first of the mutant's own that the check is for; if all of them let it
    live, its other dtypes follow. A variant is run on each in one dtype, in turn, so that the family sees all of them,
    and under another seed in another; a sabotage adapter in one, on what it claims. A generic mutant is run until
    something kills it.
    """
    if isinstance(member, GenericMutant):
        return until_killed(member, profile, seed)
    if isinstance(member, Variant):
        turn = VARIANTS.index(member) + crc32(seed.encode())
        rows = [(c, c.dtypes[(turn + i) % len(c.dtypes)]) for i, c in enumerate(_checks_of(member))]
        return _run(member, rows, profile, seed)
    if isinstance(member, Sabotage):
        claimed = [check for check in checks() if must_fail(member, check)]
        return _run(member, [(check, _preferred(check, dtypes.NAMES)[0]) for check in claimed], profile, seed)
    wanted = {check.requirement.slug: _preferred(check, member.dtypes) for check in _checks_of(member)}
    found: list[Cell] = []
    for round_ in range(len(member.dtypes)):
        turns = [(c, wanted[c.requirement.slug][round_ : round_ + 1]) for c in _checks_of(member)]
        found += _run(member, [(check, names[0]) for check, names in turns if names], profile, seed)
        if any(cell.killed for cell in found):
            break
    return found


def family(member: Member) -> str:
    """Return the word in front of the colon: mutant, variant, sabotage or generic."""
    return "generic" if isinstance(member, GenericMutant) else type(member).__name__.lower()


def _checks_of(member: Mutant | Variant) -> list[Check]:
    return [check for check in checks() if check.operation in member.operations]


def _preferred(check: Check, wanted: Sequence[str]) -> list[str]:
    return [dtype for dtype in wanted if dtype in check.dtypes] or list(check.dtypes[:1])


def _run(member: Member, rows: Iterable[tuple[Check, str]], profile: Profile, seed: str) -> list[Cell]:
    name = f"{family(member)}:{member.identifier}"
    target = load(name)
    return [run_cell(name, target, check, dtype, profile, seed) for check, dtype in rows]


@dataclass(frozen=True)
class KillMatrix:
    """The cells of a run, and their totals. shard: which part of a run this is, None for a whole one."""

    profile: Profile
    seed: str
    cells: tuple[Cell, ...]
    shard: Shard | None = None

    def of(self, member: Member) -> list[Cell]:
        """Return the cells of one member."""
        return [cell for cell in self.cells if (cell.family, cell.member) == (family(member), member.identifier)]

    def first_killer(self, mutant: Mutant) -> Cell | None:
        """Return the cell that needed the fewest examples, the first in the suite's order; None for a survivor."""
        return min((cell for cell in self.of(mutant) if cell.killed), key=lambda cell: cell.examples, default=None)

    @property
    def mutants(self) -> list[Mutant]:
        """Mutants that were run."""
        return [mutant for mutant in MUTANTS if self.of(mutant)]

    @property
    def survivors(self) -> list[Mutant]:
        """Mutants that no requirement killed."""
        return [mutant for mutant in self.mutants if self.first_killer(mutant) is None]

    @property
    def generic(self) -> list[GenericMutant]:
        """Generic mutants that were run."""
        ran = {cell.member for cell in self.cells if cell.family == "generic"}
        return [mutant for mutant in generic_mutants() if mutant.identifier in ran] if ran else []

    @property
    def generic_survivors(self) -> list[GenericMutant]:
        """Generic mutants that no requirement killed."""
        killed = {cell.member for cell in self.cells if cell.family == "generic" and cell.killed}
        return [mutant for mutant in self.generic if mutant.identifier not in killed]

    @property
    def unexplained(self) -> list[GenericMutant]:
        """Generic survivors that nobody has looked at."""
        return [mutant for mutant in self.generic_survivors if mutant.identifier not in survivors()]

    @property
    def outdated(self) -> list[GenericMutant]:
        """Generic mutants that are listed as survivors, and were killed."""
        survived = {mutant.identifier for mutant in self.generic_survivors}
        return [m for m in self.generic if m.identifier in survivors() and m.identifier not in survived]

    @property
    def counterexamples(self) -> list[Cell]:
        """Cells with a smallest counterexample, in ascending order of its size."""
        return sorted((cell for cell in self.cells if cell.scalars is not None), key=lambda cell: cell.scalars or 0)

    @property
    def unreproduced(self) -> list[Cell]:
        """Counterexamples whose script, in a process of its own, did not reproduce the violation."""
        return [cell for cell in self.counterexamples if cell.script_status != 1]

    @property
    def false_alarms(self) -> list[Cell]:
        """Cells in which a correct variant was accused."""
        return [cell for cell in self.cells if cell.family == "variant" and cell.killed]

    @property
    def escapes(self) -> list[Cell]:
        """Cells in which a sabotage adapter kept a requirement that it should have failed."""
        return [cell for cell in self.cells if cell.family == "sabotage" and not cell.killed]

    @property
    def exit_status(self) -> int:
        """0 where the suite catches what it should and accuses nothing that is right, 1 where not, 3 where it erred."""
        wrong = (self.survivors, self.unexplained, self.outdated, self.unreproduced, self.false_alarms, self.escapes)
        return 3 if self.errors else 1 if any(wrong) else 0

    @property
    def errors(self) -> list[Cell]:
        """Cells with an error of the suite itself, which makes the verdict invalid."""
        return [cell for cell in self.cells if cell.status == Status.HARNESS_ERROR]

    def kills(self, by: str) -> dict[str, int]:
        """Return the number of killed mutants by a field of the cells: ``requirement``, ``kind``, ``dtype``, …."""
        killed = {(getattr(cell, by), cell.member) for cell in self.cells if cell.family == "mutant" and cell.killed}
        return dict(sorted(Counter(name for name, _ in killed).items()))

    def to_dict(self) -> dict[str, Any]:
        """Return the whole document, valid against ``schema/mutants-1.json``."""
        return {
            "schema": SCHEMA_NAME,
            "profile": {"name": self.profile.name, "examples": self.profile.examples},
            "seed": self.seed,
            "summary": {
                "mutants": len(self.mutants),
                "killed": len(self.mutants) - len(self.survivors),
                "survivors": [mutant.identifier for mutant in self.survivors],
                "variants": len({cell.member for cell in self.cells if cell.family == "variant"}),
                "false_alarms": len(self.false_alarms),
                "sabotages": len({cell.member for cell in self.cells if cell.family == "sabotage"}),
                "escapes": len(self.escapes),
                "kills_by_requirement": self.kills("requirement"),
                "kills_by_kind": self.kills("kind"),
            },
            "mutants": [self._mutant(mutant) for mutant in self.mutants],
            "generic": self._generic(),
            "variants": [
                _named(v) | {"operations": list(v.operations), "link": v.link} for v in VARIANTS if self.of(v)
            ],
            "sabotages": [_named(s) | {"exempt": dict(s.exempt)} for s in SABOTAGES if self.of(s)],
            "not_expressible": [dict(bug) for bug in known_bugs() if "reason" in bug],
            "cells": [asdict(cell) for cell in self.cells],
            **({"shard": self.shard.to_dict()} if self.shard else {}),
        }

    def _generic(self) -> dict[str, Any]:
        """Return counts by operator, and the survivors with their reasons."""
        living = {mutant.identifier for mutant in self.generic_survivors}
        kinds = sorted({mutant.site.operator for mutant in self.generic})
        outcome = [(mutant.site.operator, mutant.identifier in living) for mutant in self.generic]
        return {
            "mutants": len(self.generic),
            "killed": len(self.generic) - len(living),
            "by_operator": {
                kind: {"mutants": outcome.count((kind, True)) + outcome.count((kind, False))}
                | {"killed": outcome.count((kind, False))}
                for kind in kinds
            },
            "survivors": {name: survivors().get(name) for name in sorted(living)},
        }

    def _mutant(self, mutant: Mutant) -> dict[str, Any]:
        killer = self.first_killer(mutant)
        words = {"link": mutant.link, "area": mutant.area, "operations": list(mutant.operations)}
        first = None if killer is None else {k: getattr(killer, k) for k in ("requirement", "dtype", "examples")}
        return _named(mutant) | words | {"killed": killer is not None, "first_killer": first}


def _named(member: Member) -> dict[str, Any]:
    return {"id": member.identifier, "title": member.title}


def kill_matrix(
    members: Iterable[Member] = (*MUTANTS, *VARIANTS, *SABOTAGES),
    profile: Profile = MATRIX_PROFILE,
    seed: str = "slug",
) -> KillMatrix:
    """Run members one after another."""
    return KillMatrix(profile, seed, tuple(cell for member in members for cell in cells(member, profile, seed)))


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of the document."""
    text = resources.files("veriformer.verify").joinpath("schema/mutants-1.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def validate(document: Mapping[str, Any]) -> None:
    """Raise ValueError that names the first place where the document breaks the schema."""
    import jsonschema

    first = next(jsonschema.Draft202012Validator(schema()).iter_errors(document), None)
    if first is not None:
        raise ValueError(f"mutants: {'/'.join(map(str, first.path)) or 'the document'}: {first.message}")
