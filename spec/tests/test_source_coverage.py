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
    REASONS,
    VERDICTS,
    Place,
    SourceStatement,
    counts,
    excused,
    items,
    places,
    quoted_lines,
    statements,
    titles,
    uncovered,
)

DOCUMENTS = {"000", "001", "002", "003", "004"}
DISPLAYED = {"000": 33, "001": 51, "002": 90, "003": 72, "004": 21}


def _entries():
    errata = {f"{e.slug}:{x.slug}": {"wrong": "refuted"}.get(x.kind, x.kind) for e in equations() for x in e.errata}
    return {f"{e.slug}:{s.slug}": s for e in equations() for s in e.steps}, errata


def test_names_are_unique_and_say_where():
    names = [i.id for i in items()]
    assert len(set(names)) == len(names) > 900
    for item in items():
        source = item.statement.source
        assert re.fullmatch(rf"{source.document}:{source.line}\.\d+", item.id)
        assert source.document in DOCUMENTS
        assert source.line > 0


def test_nothing_is_listed_twice():
    said = [(i.statement.quoted[0], i.statement.text, i.statement.decided_by) for i in items()]
    assert len(set(said)) == len(said)


def test_every_statement_has_the_verdict_and_the_scope_of_what_decides_it():
    steps, errata = _entries()
    order = [Scope.NUMERIC, Scope.ENUMERATED, Scope.ALL]
    for item in items():
        statement, names = item.statement, item.statement.decided_by.split()
        assert statement.text
        if statement.reason == "run":
            assert (statement.verdict, statement.scope) == ("confirmed", Scope.NUMERIC)
            continue
        found = [steps[name].scope for name in names if name in steps]
        least = min(found, key=order.index, default=None)
        assert statement.scope == (least or "")
        if found:
            assert len(found) == len(names), item.id
            assert statement.verdict == ("confirmed" if least is Scope.NUMERIC else "proved")
        elif ":" in statement.decided_by:
            assert [statement.verdict] == [errata[name] for name in names], item.id
        else:
            assert statement.verdict == ("defined" if names or statement.reason == "notation" else "not checkable")


def test_a_definition_is_not_called_proved():
    defined = [i.statement for i in items() if i.statement.verdict == "defined"]
    assert {s.scope for s in defined} == {""}
    assert {"attention", "gelu", "softmax"} <= {s.decided_by for s in defined}
    with pytest.raises(LookupError, match="no equation"):
        assert SourceStatement(Source("002", "5.1", 637), "x", "no-such-equation").verdict


def test_of_several_steps_the_one_that_reaches_least_counts():
    both = SourceStatement(Source("004", "2.6", 245), "x", "softmax:ratio softmax:stable-form")
    assert (both.verdict, both.scope) == ("proved", Scope.ENUMERATED)


def test_what_has_a_number_is_decided_by_the_equation_of_that_number():
    numbers = {e.slug: re.sub(r"[a-z]", "", e.number or "") for e in equations()}
    numbered = 0
    for statement in statements():
        for words in (q.words for q in statement.quoted):
            if printed := re.search(r"\\quad \((\d+)\)|\\tag\{(\d+)\}", words):
                numbered += 1
                assert (printed[1] or printed[2]) in {numbers[slug] for slug in statement.equations}, words
    assert numbered > 50


def test_what_is_not_checkable_says_why():
    open_ = [i.statement for i in items() if i.statement.verdict == "not checkable"]
    assert open_
    assert all(len(s.why.split()) >= 3 for s in open_)
    assert set(REASONS) == {s.reason for s in statements() if s.reason in REASONS}


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


def test_what_both_versions_of_part_two_say_is_one_statement():
    places_of = [[q.document for q in s.quoted] for s in statements()]
    assert all(len(found) == 1 or found == ["000", "001"] for found in places_of)
    assert places_of.count(["000", "001"]) > 150


def test_no_place_is_left_uncovered():
    # May only shrink, and there is nothing left to shrink.
    assert uncovered() == ()


def test_a_place_without_a_statement_is_found(monkeypatch):
    some = next(p for p in places() if p.holds("002", 637, 637))
    others = tuple(s for s in statements() if not any(q.line == 637 for q in s.quoted))
    monkeypatch.setattr(source_coverage, "statements", lambda: others)
    assert some in uncovered()
    assert all(p.first <= 637 <= p.last for p in uncovered())


def test_lines_that_need_no_statement_say_why_and_show_something():
    shown = {(p.document, n) for p in places() for n in range(p.first, p.last + 1)}
    said = {(q.document, n) for s in statements() for q in s.quoted for n in quoted_lines(q)}
    for place, reason in excused():
        lines = {(place.document, n) for n in range(place.first, place.last + 1)}
        assert reason
        assert lines & shown
        assert not lines & said, place


def test_the_displayed_formulas_of_the_documents_are_listed():
    found = [p for p in places() if p.kind == "displayed formula"]
    assert {d: sum(p.document == d for p in found) for d in DOCUMENTS} == DISPLAYED
    kinds = {"displayed formula", "row of a formula", "inline formula", "code", "number", "comparison", "cause"}
    assert {p.kind for p in places()} == kinds


def test_rows_of_formulas_lie_in_formulas():
    def lines(kind):
        return [(p.document, n) for p in places() if p.kind == kind for n in range(p.first, p.last + 1)]

    assert all(0 < p.first <= p.last for p in places())
    assert len(set(lines("row of a formula"))) == len(lines("row of a formula")) > 300
    assert set(lines("row of a formula")) <= set(lines("displayed formula"))


def test_a_statement_has_the_kind_of_its_place():
    kinds = {(i.statement.source.document, i.statement.source.line): i.kind for i in items()}
    assert kinds["002", 637] == "displayed formula"
    assert kinds["002", 664] == "inline formula"
    assert kinds["004", 312] == "code"
    assert kinds["002", 633] == "number"
    assert not Place("002", "number", 3, 5).holds("003", 4, 4)


def test_every_erratum_is_in_the_inventory():
    decided = {name for i in items() for name in i.statement.decided_by.split()}
    assert {f"{e.slug}:{x.slug}" for e in equations() for x in e.errata} <= decided


def test_every_source_of_an_equation_is_in_the_inventory():
    covered = {(q.document, n) for s in statements() for q in s.quoted for n in quoted_lines(q)}
    covered |= {(p.document, n) for p in places() for n in range(p.first, p.last + 1)}
    assert {(s.document, s.line) for e in equations() for s in e.sources} <= covered


def test_counts_add_up():
    found = counts(items())
    assert tuple(found) == VERDICTS
    assert sum(found.values()) == len(items())
    assert all(found.values())


@pytest.mark.whole
def test_the_document_lists_what_the_equations_decide():
    (attention,) = select("23")
    listed = document([attention])["inventory"]
    assert all("attention" in {name.partition(":")[0] for name in i["decided_by"].split()} for i in listed)
    both = {i["decided_by"] for i in document([attention, *select("multi-head")])["inventory"]}
    assert {"multi-head:sum-of-heads", "attention:worked"} <= both
    assert {i["scope"] for i in listed if i["verdict"] == "proved"} <= set(VERDICTS[:3])
    assert all(i["quotation"] == i["places"][0]["quotation"] for i in listed)
    printed = next(i for i in listed if i["decided_by"] == "attention:worked-weights")
    assert (printed["document"], printed["line"], printed["verdict"]) == ("002", 1029, "refuted")
    assert all(set(i) >= {"id", "section", "kind", "statement", "reason"} for i in listed)


def test_the_command_counts_verdicts_and_writes_the_inventory():
    run = CliRunner().invoke(main, ["spec", "20", "--jobs", "1", "--json", "-"], standalone_mode=False)
    assert json.loads(run.stdout)["inventory"]
    shown = CliRunner().invoke(main, ["spec", "1", "--jobs", "1"], standalone_mode=False)
    assert re.search(r"\d+ statements of the documents: \d+ proved for all n, \d+ defined\n", shown.stdout)
