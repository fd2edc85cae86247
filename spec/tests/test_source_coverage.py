"""The inventory of the source documents: every place is covered, and every statement has the verdict of its entry."""

import json
import re

import pytest
from click.testing import CliRunner

from veriformer.spec.cli import main
from veriformer.spec.document import document
from veriformer.spec.equation import Scope, Source
from veriformer.spec.registry import equations, select
from veriformer.spec.sources import source_coverage
from veriformer.spec.sources.source_coverage import (
    VERDICTS,
    Place,
    counts,
    items,
    places,
    statements,
    titles,
    uncovered,
)
from veriformer.spec.sources.source_statement import SourceStatement

DOCUMENTS = {"000", "001", "002", "003", "004"}
DISPLAYED = {"000": 33, "001": 51, "002": 90, "003": 72, "004": 21}


def _entries():
    steps = {
        f"{e.slug}:{s.slug}": "confirmed" if s.scope is Scope.NUMERIC else "proved"
        for e in equations()
        for s in e.steps
    }
    errata = {f"{e.slug}:{x.slug}": {"wrong": "refuted"}.get(x.kind, x.kind) for e in equations() for x in e.errata}
    return steps | errata


def test_names_are_unique_and_say_where():
    names = [i.id for i in items()]
    assert len(set(names)) == len(names) > 900
    for item in items():
        source = item.statement.source
        assert re.fullmatch(rf"{source.document}:{source.line}\.\d+", item.id)
        assert source.document in DOCUMENTS
        assert source.line > 0


def test_nothing_is_listed_twice():
    said = [
        (i.statement.source.document, i.statement.source.line, i.statement.text, i.statement.decided_by)
        for i in items()
    ]
    assert len(set(said)) == len(said)


def test_every_statement_has_the_verdict_of_its_entry():
    entries = _entries()
    for item in items():
        statement = item.statement
        assert statement.text
        assert statement.verdict == (entries[statement.decided_by] if statement.decided_by else "not checkable"), (
            item.id
        )


def test_what_is_not_checkable_says_why():
    open_ = [i.statement for i in items() if not i.statement.decided_by]
    assert open_
    assert all(len(s.reason.split()) >= 3 for s in open_)


def test_an_unknown_entry_is_no_verdict():
    with pytest.raises(LookupError, match="no step or erratum"):
        assert SourceStatement(Source("002", "5.1", 637), "x", "attention:no-such-step").verdict


def test_a_statement_needs_what_decides_it_or_a_reason():
    source = Source("002", "6", 1)
    with pytest.raises(ValueError, match="expected either"):
        SourceStatement(source, "x")
    with pytest.raises(ValueError, match="expected either"):
        SourceStatement(source, "x", "attention:worked", "because")


def test_rows_of_too_few_columns_are_refused(monkeypatch):
    monkeypatch.setattr(source_coverage, "_text", lambda name: "document\ttitle\n000")
    with pytest.raises(ValueError, match="line 2: expected document, title between tabs, got 1 column"):
        source_coverage._rows("source_documents.tsv")


def test_documents_have_titles():
    assert set(titles()) == DOCUMENTS
    assert len(set(titles().values())) == len(DOCUMENTS)


def test_both_versions_of_part_two_are_judged():
    optimization = {e.slug for e in equations() if ".optimization." in e.steps[0].identity.__module__}
    judged = [s.source.document for s in statements() if s.equation in optimization]
    assert judged.count("001") >= judged.count("000") > 0


def test_no_place_is_left_uncovered():
    # May only shrink, and there is nothing left to shrink.
    assert uncovered() == ()


def test_a_place_without_a_statement_is_found(monkeypatch):
    some = next(p for p in places() if p.holds(Source("002", "5.1", 637)))
    others = tuple(s for s in statements() if not some.holds(s.source))
    monkeypatch.setattr(source_coverage, "statements", lambda: others)
    assert uncovered() == (some,)


def test_the_displayed_formulas_of_the_documents_are_listed():
    found = [p for p in places() if p.kind == "displayed formula"]
    assert {d: sum(p.document == d for p in found) for d in DOCUMENTS} == DISPLAYED
    assert {p.kind for p in places()} == {"displayed formula", "row of a formula", "inline formula", "number"}


def test_places_are_apart_but_for_the_rows_of_formulas():
    def lines(kind, *, but=False):
        return [(p.document, n) for p in places() if (p.kind == kind) != but for n in range(p.first, p.last + 1)]

    row = "row of a formula"
    assert all(0 < p.first <= p.last for p in places())
    assert len(set(lines(row, but=True))) == len(lines(row, but=True))
    assert len(set(lines(row))) == len(lines(row)) > 200
    assert set(lines(row)) <= set(lines("displayed formula"))


def test_a_statement_has_the_kind_of_its_place():
    kinds = {(i.statement.source.document, i.statement.source.line): i.kind for i in items()}
    assert kinds["002", 637] == "displayed formula"
    assert kinds["002", 664] == "inline formula"
    assert kinds["004", 312] == "number"
    assert kinds["002", 620] == "statement"
    assert not Place("002", "number", 3, 5).holds(Source("003", "", 4))


def test_every_erratum_is_in_the_inventory():
    decided = {i.statement.decided_by for i in items()}
    assert {f"{e.slug}:{x.slug}" for e in equations() for x in e.errata} <= decided


def test_every_source_of_an_equation_is_in_the_inventory():
    covered = {(i.statement.source.document, i.statement.source.line) for i in items()}
    covered |= {(p.document, n) for p in places() for n in range(p.first, p.last + 1)}
    assert {(s.document, s.line) for e in equations() for s in e.sources} <= covered


def test_counts_add_up():
    found = counts(items())
    assert tuple(found) == VERDICTS
    assert sum(found.values()) == len(items())
    assert all(found.values())


def test_the_document_lists_what_the_equations_decide():
    (attention,) = select("23")
    listed = document([attention])["inventory"]
    assert {i["decided_by"].partition(":")[0] for i in listed} == {"attention"}
    printed = next(i for i in listed if i["decided_by"] == "attention:worked-weights")
    assert (printed["document"], printed["line"], printed["verdict"]) == ("002", 1029, "refuted")
    assert all(set(i) >= {"id", "section", "kind", "statement", "reason"} for i in listed)


def test_the_command_counts_verdicts_and_writes_the_inventory():
    run = CliRunner().invoke(main, ["spec", "20", "--jobs", "1", "--json", "-"], standalone_mode=False)
    assert json.loads(run.stdout)["inventory"]
    shown = CliRunner().invoke(main, ["spec", "20", "--jobs", "1"], standalone_mode=False)
    assert re.search(r"\d+ statements of the documents: \d+ proved, \d+ contradictory", shown.stdout)
