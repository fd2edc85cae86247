"""The kill matrix: which public bugs, put into a correct implementation, the suite catches, and by what."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from statistics import median_low
from typing import Any

from veriformer.reports.runs import read_json
from veriformer.verify.results.foreign import number

MUTANTS_SCHEMA_NAME = "veriformer/mutants/1"

Cell = Mapping[str, Any]


@dataclass(frozen=True)
class KillRow:
    """A mutant against the requirements of an operation, in the order of the table's columns.

    marks: the cell where it was killed there, else the cell where it lived, or None where the requirement was not run.
    """

    mutant: Mapping[str, Any]
    marks: tuple[Cell | None, ...]


@dataclass(frozen=True)
class KillTable:
    """The mutants of one operation against its requirements."""

    operation: str
    requirements: tuple[str, ...]
    rows: tuple[KillRow, ...]

    @property
    def laws(self) -> list[str]:
        """Return the requirements without their operation's name."""
        return [name.partition(".")[2] or name for name in self.requirements]

    @property
    def killed(self) -> int:
        """Return the number of its mutants that are killed."""
        return sum(bool(row.mutant["killed"]) for row in self.rows)


@dataclass(frozen=True)
class Kills:
    """A kill matrix as the page shows it."""

    document: Mapping[str, Any]

    @property
    def cells(self) -> list[Cell]:
        """Return every cell of every member."""
        return list(self.document["cells"])

    @property
    def mutants(self) -> list[Mapping[str, Any]]:
        """Return every mutant that was run."""
        return list(self.document["mutants"])

    @property
    def survivors(self) -> list[Mapping[str, Any]]:
        """Return the mutants that nothing killed."""
        return [mutant for mutant in self.mutants if not mutant["killed"]]

    @property
    def false_alarms(self) -> list[Cell]:
        """Return where a correct variant was accused."""
        return [cell for cell in self.cells if cell["family"] == "variant" and cell["killed"]]

    @property
    def escapes(self) -> list[Cell]:
        """Return where an adapter that computes nothing kept to a requirement."""
        return [cell for cell in self.cells if cell["family"] == "sabotage" and not cell["killed"]]

    @property
    def errors(self) -> list[Cell]:
        """Return where the suite itself broke."""
        return [cell for cell in self.cells if cell["status"] == "harness-error"]

    @property
    def median_examples(self) -> int | None:
        """Return the median number of examples to the first kill."""
        killers = [mutant["first_killer"] for mutant in self.mutants if mutant["first_killer"]]
        return median_low([killer["examples"] for killer in killers]) if killers else None

    @property
    def sound(self) -> bool:
        """Return whether all mutants died, nothing correct was accused, nothing empty escaped and no cell broke."""
        return bool(self.mutants) and not (self.survivors or self.false_alarms or self.escapes or self.errors)

    @property
    def sentence(self) -> str:
        """Return the matrix in one sentence."""
        dead = len(self.mutants) - len(self.survivors)
        variants, empty = (len(self.document[name]) for name in ("variants", "sabotages"))
        speed = f", the median after {self.median_examples} examples" if self.median_examples is not None else ""
        broke = f"; the suite itself broke in {number(len(self.errors), 'cell')}" if self.errors else ""
        return (
            f"{dead} of {number(len(self.mutants), 'mutant')} killed{speed}; "
            f"{number(len(self.false_alarms), 'false alarm')} over {number(variants, 'correct variant')}; "
            f"{number(len(self.escapes), 'escape')} of {number(empty, 'empty adapter')}{broke}."
        )

    @property
    def tables(self) -> list[KillTable]:
        """Return a table per operation."""
        cells = [cell for cell in self.cells if cell["family"] == "mutant"]
        return [self._table(operation, cells) for operation in dict.fromkeys(str(cell["operation"]) for cell in cells)]

    def precedents(self, requirement: str) -> list[Mapping[str, Any]]:
        """Return the mutants that this requirement kills: public bugs of the class that a violation belongs to."""
        killed = {c["member"] for c in self.cells if c["requirement"] == requirement and _kills(c)}
        return [mutant for mutant in self.mutants if mutant["id"] in killed]

    def _table(self, operation: str, cells: Sequence[Cell]) -> KillTable:
        here = [cell for cell in cells if cell["operation"] == operation]
        requirements = tuple(dict.fromkeys(str(cell["requirement"]) for cell in here))
        met: dict[tuple[str, str], Cell] = {}
        for cell in here:
            key = (cell["member"], cell["requirement"])
            if key not in met or _kills(cell):
                met[key] = cell
        members = dict.fromkeys(cell["member"] for cell in here)
        rows = [
            KillRow(mutant, tuple(met.get((mutant["id"], requirement)) for requirement in requirements))
            for mutant in self.mutants
            if mutant["id"] in members
        ]
        return KillTable(operation, requirements, tuple(rows))


def read_kills(path: Path) -> Kills:
    """Read and validate what ``veriformer mutants --json`` writes. Raises ValueError that names the file."""
    expected = f"a kill matrix ({MUTANTS_SCHEMA_NAME})"
    document = read_json(path, expected)
    import jsonschema

    errors = jsonschema.Draft202012Validator(_schema()).iter_errors(document)
    first = min(errors, key=lambda error: list(map(str, error.path)), default=None)
    if first is not None:
        place = "/".join(map(str, first.path)) or "the document"
        raise ValueError(f"{path}: expected {expected}: {place}: {first.message}")
    return Kills(document)


@cache
def _schema() -> dict[str, Any]:
    text = resources.files("veriformer.verify").joinpath("schema/mutants-1.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def _kills(cell: Cell) -> bool:
    return bool(cell["family"] == "mutant" and cell["killed"])
