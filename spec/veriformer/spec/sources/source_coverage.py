"""Everything that the source documents say, and what became of it: their statements, and where statements must be.

source_documents.tsv has the titles of the documents, and the tables of `statements` one statement in each row, in the
words of the document; where two documents say the same, the row has both places. The places of source_places.json,
where a document shows a formula, a number, a comparison, a cause or code, were found by scanning the documents. A
statement covers the lines of its quotation, so that coverage is computed; lines_without_statement.tsv lists the places
that need none, with the reason.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from veriformer.spec.equation import Equation, Scope, Source
from veriformer.spec.sources.source_statement import Quotation, SourceStatement

VERDICTS = (
    *(scope.value for scope in Scope),
    "defined",
    "refuted",
    "imprecise",
    "contradictory",
    "convention",
    "not checkable",
)
"""Verdicts on a statement; of a proved one, the scope of the proof."""


_TABLES = ("part_2", "part_1", "fundamentals", "anatomy")
LINE_END = "⏎"


@dataclass(frozen=True)
class Place:
    """Lines of a document that show something of a kind: "displayed formula", "row of a formula" in one of those,
    "inline formula", "code", "number", "comparison" or "cause".
    """

    document: str
    kind: str
    first: int
    last: int

    def holds(self, document: str, first: int, last: int) -> bool:
        """Return whether these lines touch it."""
        return document == self.document and self.first <= last and first <= self.last


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
    return tuple(_statement(row) for name in _TABLES for row in _rows(f"statements/{name}.tsv"))


@cache
def items() -> tuple[Item, ...]:
    """Every statement with its name and kind."""
    seen: Counter[tuple[str, int]] = Counter()
    found = []
    for statement in statements():
        where = statement.source.document, statement.source.line
        seen[where] += 1
        found.append(Item(f"{where[0]}:{where[1]}.{seen[where]}", _kind(statement.quoted[0]), statement))
    return tuple(found)


def decided_by(equations: Sequence[Equation], *, everything: bool) -> tuple[Item, ...]:
    """The items that these equations decide; with everything, also those that nothing decides."""
    slugs = {e.slug for e in equations}
    return tuple(i for i in items() if (slugs & i.statement.equations if i.statement.equations else everything))


def counts(found: Iterable[Item]) -> dict[str, int]:
    """Return the number of items by verdict; of proved ones, by the scope of the proof."""
    by_verdict = Counter(i.statement.scope or i.statement.verdict for i in found)
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


@cache
def excused() -> tuple[tuple[Place, str], ...]:
    """Lines that show something and need no statement, with the reason."""
    rows = _rows("lines_without_statement.tsv")
    return tuple((Place(r["document"], "", int(r["first"]), int(r["last"])), r["reason"]) for r in rows)


def uncovered() -> tuple[Place, ...]:
    """The places that no statement touches and that no reason excuses."""
    covered = {(q.document, n) for s in statements() for q in s.quoted for n in quoted_lines(q)}
    covered |= {(p.document, n) for p, _ in excused() for n in range(p.first, p.last + 1)}
    return tuple(p for p in places() if not covered & {(p.document, n) for n in range(p.first, p.last + 1)})


def quoted_lines(quotation: Quotation) -> range:
    """The lines of a quotation: in its words a line ends at "⏎"."""
    return range(quotation.line, quotation.line + 1 + quotation.words.count(LINE_END))


def _statement(row: dict[str, str]) -> SourceStatement:
    quoted = [_quotation(row["place"], row["quotation"])]
    if row["twin"]:
        quoted.append(_quotation(row["twin"], row["twin_quotation"] or row["quotation"]))
    left_out = tuple(words for words in row["left_out"].split(" | ") if words)
    source = Source(quoted[0].document, row["section"], quoted[0].line)
    return SourceStatement(source, row["statement"], row["decided_by"], row["reason"], tuple(quoted), left_out)


def _quotation(place: str, words: str) -> Quotation:
    document, line, column = place.split(":")
    return Quotation(document, int(line), int(column), words)


def _kind(quotation: Quotation) -> str:
    # A row's formula is listed before it.
    lines = quoted_lines(quotation)
    return next((p.kind for p in places() if p.holds(quotation.document, lines[0], lines[-1])), "statement")


def _rows(name: str) -> list[dict[str, str]]:
    """The rows of a table by their columns."""
    header, *rows = (line.split("\t") for line in _text(name).splitlines())
    for n, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise ValueError(f"{name}, line {n}: expected {', '.join(header)} between tabs, got {len(row)} columns")
    return [dict(zip(header, row, strict=True)) for row in rows]


def _text(name: str) -> str:
    return files("veriformer.spec.sources").joinpath(name).read_text(encoding="utf-8")
