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

from veriformer.spec.equation import Equation, Erratum, Scope, Source, Step

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

REASONS = {
    "notation": "a notation: it names things or their shapes, or gives the numbers of an example, "
    "and says nothing that could be false",
    "trained": "a statement on trained models: it depends on data, training and measure, none of which is given",
    "machine": "a statement on machines and programs: it depends on their bandwidth and speed, which are not given",
    "quality": "no measure of quality is given by which it could be judged",
    "advice": "advice: what is to be achieved, and by what measure, is not said",
    "practice": "a description of practice, which nothing derived could contradict",
    "size": "a choice of size, which any other could replace",
    "tables": "entries of learned tables that are not given",
    "analogy": "an analogy: it illustrates what is stated elsewhere, and is about no Transformer",
    "plan": "it says what the document is about to do, or has done",
    "run": "code, or what it prints: a test runs it as it is printed, and it prints just that, to four digits",
}
"""Why nothing decides a statement, by a word; other reasons stand in the rows themselves."""

_FURTHEST_LAST = (Scope.NUMERIC, Scope.ENUMERATED, Scope.ALL)


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
    """Return the titles of the documents, by their numbers."""
    return {row["document"]: row["title"] for row in _rows("source_documents.tsv")}


@cache
def statements() -> tuple[SourceStatement, ...]:
    """Return every statement, in the order of the documents."""
    return tuple(_statement(row) for name in _TABLES for row in _rows(f"statements/{name}.tsv"))


@cache
def items() -> tuple[Item, ...]:
    """Return every statement with its name and kind."""
    seen: Counter[tuple[str, int]] = Counter()
    found = []
    for statement in statements():
        where = statement.source.document, statement.source.line
        seen[where] += 1
        found.append(Item(f"{where[0]}:{where[1]}.{seen[where]}", _kind(statement.quoted[0]), statement))
    return tuple(found)


def decided_by(equations: Sequence[Equation], *, everything: bool) -> tuple[Item, ...]:
    """Return the items that these equations decide; with everything, also those that nothing decides."""
    slugs = {e.slug for e in equations}
    return tuple(i for i in items() if (slugs & i.statement.equations if i.statement.equations else everything))


def counts(found: Iterable[Item]) -> dict[str, int]:
    """Return the number of items by verdict; of proved ones, by the scope of the proof."""
    by_verdict = Counter(i.statement.scope or i.statement.verdict for i in found)
    return {verdict: by_verdict[verdict] for verdict in VERDICTS}


@cache
def places() -> tuple[Place, ...]:
    """Return the places of formulas and numbers in the documents."""
    return tuple(
        Place(document, kind, first, last)
        for document, kinds in json.loads(_text("source_places.json")).items()
        for kind, lines in kinds.items()
        for first, last in lines
    )


@cache
def excused() -> tuple[tuple[Place, str], ...]:
    """Return lines that show something and need no statement, with the reason."""
    rows = _rows("lines_without_statement.tsv")
    return tuple((Place(r["document"], "", int(r["first"]), int(r["last"])), r["reason"]) for r in rows)


def uncovered() -> tuple[Place, ...]:
    """Return the places that no statement quotes and no reason excuses."""
    covered = {(q.document, n) for s in statements() for q in s.quoted for n in quoted_lines(q)}
    covered |= {(p.document, n) for p, _ in excused() for n in range(p.first, p.last + 1)}
    return tuple(p for p in places() if not covered & {(p.document, n) for n in range(p.first, p.last + 1)})


def quoted_lines(quotation: Quotation) -> range:
    """Return the lines of a quotation, in which "⏎" ends a line."""
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
    """Return the rows of a table by their columns."""
    header, *rows = (line.split("\t") for line in _text(name).splitlines())
    for n, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise ValueError(f"{name}, line {n}: expected {', '.join(header)} between tabs, got {len(row)} columns")
    return [dict(zip(header, row, strict=True)) for row in rows]


def _text(name: str) -> str:
    return files("veriformer.spec.sources").joinpath(name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Quotation:
    """The exact words of a document, white space aside, and where they begin: line and column, both from 1."""

    document: str
    line: int
    column: int
    words: str


@dataclass(frozen=True)
class SourceStatement:
    """A formula, a number, a sentence or a piece of code of a source.

    quoted: its words, in every document that has them. text: what is claimed, as briefly as a formula says it.
    decided_by: the steps that entail the quoted words, or the erratum that refutes them, as "equation:step"; an
    equation alone where they are the definition that it states. left_out: those of the quoted words that are not
    entailed. reason: where nothing decides it, a word of `REASONS` or a sentence.
    """

    source: Source
    text: str
    decided_by: str = ""
    reason: str = ""
    quoted: tuple[Quotation, ...] = ()
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.decided_by) == bool(self.reason):
            raise ValueError(
                f"statement {self.text!r} ({self.source}): expected either what decides it or a reason why nothing "
                f"does, got decided_by={self.decided_by!r}, reason={self.reason!r}"
            )

    @property
    def quotation(self) -> str:
        """The words of the first document that has them."""
        return self.quoted[0].words if self.quoted else ""

    @property
    def equations(self) -> frozenset[str]:
        """The slugs of the equations that decide it."""
        return frozenset(name.partition(":")[0] for name in self.decided_by.split())

    @property
    def why(self) -> str:
        """The reason in full."""
        return REASONS.get(self.reason, self.reason)

    @property
    def scope(self) -> str:
        """Scope of the steps that entail it: that of the step which reaches least. Code that is run is confirmed
        numerically; of anything else without steps there is nothing to say.
        """
        if self.reason == "run":
            return str(Scope.NUMERIC)
        scopes = {found.scope for found in self._deciding if isinstance(found, Step)}
        return next((str(scope) for scope in _FURTHEST_LAST if scope in scopes), "")

    @property
    def verdict(self) -> str:
        """Verdict on the statement: what the steps prove or the erratum refutes, if they hold; a definition is
        "defined".
        """
        if not self.decided_by:
            return {"notation": "defined", "run": "confirmed"}.get(self.reason, "not checkable")
        if ":" not in self.decided_by:
            if self.decided_by not in _equations():
                raise LookupError(f"statement {self.text!r}: no equation is called {self.decided_by!r}")
            return "defined"
        errata = [found for found in self._deciding if isinstance(found, Erratum)]
        if errata:
            return "refuted" if errata[0].kind == "wrong" else errata[0].kind
        return "confirmed" if self.scope == Scope.NUMERIC else "proved"

    @property
    def _deciding(self) -> list[Step | Erratum]:
        names = self.decided_by.split() if ":" in self.decided_by else []
        unknown = [name for name in names if name not in _entries()]
        if unknown:
            raise LookupError(f"statement {self.text!r}: no step or erratum is called {unknown[0]!r}")
        return [_entries()[name] for name in names]


@cache
def _equations() -> frozenset[str]:
    from veriformer.spec.registry import equations

    return frozenset(e.slug for e in equations())


@cache
def _entries() -> dict[str, Step | Erratum]:
    from veriformer.spec.registry import equations

    found: dict[str, Step | Erratum] = {f"{e.slug}:{s.slug}": s for e in equations() for s in e.steps}
    return found | {f"{e.slug}:{x.slug}": x for e in equations() for x in e.errata}
