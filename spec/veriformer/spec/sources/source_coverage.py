"""Everything that the source documents say, and what became of it: their statements, and where statements must be.

source_documents.tsv has the titles of the documents, and source_statements.tsv one statement in each row. The places of
source_places.json, where a document shows a formula or a number, were found by scanning the documents: displayed
formulas and those rows of theirs with a relation or a number, inline formulas with a relation, and lines and fenced
examples with numbers outside of formulas. A statement covers the places it lies in, so that coverage is computed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from veriformer.spec.equation import Equation, Source
from veriformer.spec.sources.source_statement import SourceStatement

VERDICTS = ("proved", "confirmed", "refuted", "imprecise", "contradictory", "not checkable")


@dataclass(frozen=True)
class Place:
    """Lines of a document that show something of a kind: "displayed formula", "row of a formula" in one of those,
    "inline formula", or "number".
    """

    document: str
    kind: str
    first: int
    last: int

    def holds(self, source: Source) -> bool:
        """Whether this source lies here."""
        return source.document == self.document and self.first <= source.line <= self.last


@dataclass(frozen=True)
class Item:
    """A statement, its name in the inventory ("document:line.position") and its kind: its place's, or "statement"."""

    id: str
    kind: str
    statement: SourceStatement


@cache
def titles() -> dict[str, str]:
    """The titles of the documents, by their numbers."""
    return {row["document"]: row["title"] for row in _rows("source_documents.tsv")}


@cache
def statements() -> tuple[SourceStatement, ...]:
    """Every statement, in the order of the documents."""
    return tuple(map(_statement, _rows("source_statements.tsv")))


@cache
def items() -> tuple[Item, ...]:
    """Every statement with its name and kind."""
    seen: Counter[tuple[str, int]] = Counter()
    found = []
    for statement in statements():
        where = statement.source.document, statement.source.line
        seen[where] += 1
        found.append(Item(f"{where[0]}:{where[1]}.{seen[where]}", _kind(statement.source), statement))
    return tuple(found)


def decided_by(equations: Sequence[Equation], *, everything: bool) -> tuple[Item, ...]:
    """The items that these equations decide; with everything, also those that nothing decides."""
    slugs = {e.slug for e in equations}
    return tuple(i for i in items() if (i.statement.equation in slugs if i.statement.equation else everything))


def counts(found: Iterable[Item]) -> dict[str, int]:
    """How many items have which verdict."""
    by_verdict = Counter(i.statement.verdict for i in found)
    return {verdict: by_verdict[verdict] for verdict in VERDICTS}


@cache
def places() -> tuple[Place, ...]:
    """Where the documents show formulas and numbers."""
    return tuple(
        Place(document, kind, first, last)
        for document, kinds in json.loads(_text("source_places.json")).items()
        for kind, lines in kinds.items()
        for first, last in lines
    )


def uncovered() -> tuple[Place, ...]:
    """The places in which no statement lies."""
    return tuple(p for p in places() if not any(p.holds(s.source) for s in statements()))


def _statement(row: dict[str, str]) -> SourceStatement:
    source = Source(row["document"], row["section"], int(row["line"]))
    return SourceStatement(source, row["statement"], row["decided_by"], row["reason"])


def _kind(source: Source) -> str:
    # A row's formula is listed before it.
    return next((p.kind for p in places() if p.holds(source)), "statement")


def _rows(name: str) -> list[dict[str, str]]:
    """The rows of a table by their columns."""
    header, *rows = (line.split("\t") for line in _text(name).splitlines())
    for n, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise ValueError(f"{name}, line {n}: expected {', '.join(header)} between tabs, got {len(row)} columns")
    return [dict(zip(header, row, strict=True)) for row in rows]


def _text(name: str) -> str:
    return files("veriformer.spec.sources").joinpath(name).read_text(encoding="utf-8")
