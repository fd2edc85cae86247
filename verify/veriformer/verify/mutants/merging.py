"""The parts of a kill matrix, put together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from veriformer.verify.engine import parts
from veriformer.verify.mutants.cell import Cell
from veriformer.verify.mutants.matrix import MATRIX_PROFILE, SCHEMA_NAME, KillMatrix, Member, validate
from veriformer.verify.mutants.mutation_run import EVERYONE, generic
from veriformer.verify.results import Shard
from veriformer.workers.versions import versions


@dataclass(frozen=True)
class Wanted:
    """Request of a run of the matrix: selection, seed, shrinking."""

    select: tuple[str, ...]
    seed: str
    shrink: bool

    def names(self) -> list[str]:
        """Return the members that it is about, in order."""
        return [
            name for name, member in self.members().items() if self._chosen(name, getattr(member, "operations", ()))
        ]

    def members(self) -> Mapping[str, Member]:
        """Return the members to choose from: the generic mutants if requested, else all others."""
        return generic() if any(word.startswith("generic") for word in self.select) else EVERYONE

    def part(self, number: int, of: int, seconds: Mapping[str, float]) -> Shard:
        """Return part ``number`` of ``of``; seconds: of an earlier run by member, to balance the parts."""
        groups = {name: [(name, 1.0)] for name in self.names()}
        rows = tuple(parts.split(parts.costs(groups, seconds), of)[number - 1])
        plan = {"select": list(self.select), "seed": self.seed, "shrink": self.shrink}
        return Shard(number=number, of=of, plan=plan, rows=rows, versions=versions())

    def _chosen(self, name: str, operations: Sequence[str]) -> bool:
        family, _, identifier = name.partition(":")
        words = (name, family, identifier, *operations)
        return not self.select or any(fnmatchcase(word, wanted) for wanted in self.select for word in words)


def seconds(path: Path) -> dict[str, float]:
    """Return the seconds of each member of an earlier run. Raises ValueError for a file that is no kill matrix."""
    found: dict[str, float] = {}
    for cell in read(path).cells:
        name = f"{cell.family}:{cell.member}"
        found[name] = found.get(name, 0.0) + cell.seconds
    return found


def read(path: Path) -> KillMatrix:
    """Return the matrix in a file. Raises ValueError naming the file for anything else."""
    try:
        return of_document(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: expected a kill matrix ({SCHEMA_NAME}): {error}") from error


def of_document(document: Mapping[str, Any]) -> KillMatrix:
    """Return the matrix of a JSON document. Raises ValueError where it breaks the schema."""
    validate(document)
    shard = Shard.from_dict(document["shard"]) if "shard" in document else None
    return KillMatrix(MATRIX_PROFILE, document["seed"], tuple(Cell(**cell) for cell in document["cells"]), shard)


def merge(files: Mapping[str, KillMatrix]) -> tuple[KillMatrix, list[str]]:
    """Return the whole matrix, and its missing parts in words.

    Raises NotOneRunError where the files do not belong to one run.
    """
    first = parts.check({name: matrix.shard for name, matrix in files.items()})
    parts.of_this_suite(first)
    wanted = Wanted(**{**first.plan, "select": tuple(first.plan["select"])})
    every = wanted.names()
    cells: dict[str, list[Cell]] = {}
    for matrix in files.values():
        for cell in matrix.cells:
            cells.setdefault(f"{cell.family}:{cell.member}", []).append(cell)
    there = [matrix.shard for matrix in files.values() if matrix.shard]
    whole = tuple(cell for name in every for cell in cells.get(name, []))
    return KillMatrix(MATRIX_PROFILE, wanted.seed, whole), parts.missing(there, every, list(cells))
