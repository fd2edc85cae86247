"""The quotations of the inventory against the documents, where these are present beside the checkout."""

import hashlib
import sys
from pathlib import Path

from veriformer.spec.sources.source_coverage import LINE_END, _rows, places, quoted_lines, statements

sys.path.insert(0, str(Path(__file__).parent))

from scanned_documents import documents, scanned

TEXTS = documents()


def misquoted(quotation, text):
    """Return the document's lines in the place of a quotation that differs from them; else an empty list."""
    lines = [text.split("\n")[n - 1] for n in quoted_lines(quotation)]
    lines[0] = lines[0][quotation.column - 1 :]
    words = quotation.words.split(LINE_END)
    inner = [line.strip() == said for line, said in zip(lines[:-1], words[:-1], strict=True)]
    return [] if all(inner) and lines[-1].lstrip().startswith(words[-1]) else lines


def test_all_documents_are_present_or_none_and_are_those_that_were_read():
    digests = {r["document"]: r["sha256"] for r in _rows("source_documents.tsv")}
    assert set(TEXTS) in (set(), set(digests))
    assert {d: hashlib.sha256(t.encode()).hexdigest() for d, t in TEXTS.items()} in ({}, digests)


def test_every_quotation_stands_where_it_says():
    quoted = [q for s in statements() for q in s.quoted]
    assert all(q.words and q.words == q.words.strip() for q in quoted)
    assert [(q, found) for q in quoted if q.document in TEXTS and (found := misquoted(q, TEXTS[q.document]))] == []


def test_a_misquotation_is_found():
    first = next(q for s in statements() for q in s.quoted)
    text = "\n" * (first.line - 1) + " " * (first.column - 1) + first.words
    assert misquoted(first, text) == []
    assert misquoted(first, text.replace(first.words[-1], "?")) != []


def test_the_words_that_a_step_leaves_out_are_words_of_the_quotation():
    for statement in statements():
        for words in statement.left_out:
            assert words in statement.quotation, statement.text
            assert words != statement.quotation


def test_the_places_are_what_a_scan_of_the_documents_finds():
    for document, text in TEXTS.items():
        found = {kind: [(a, b) for a, b in lines] for kind, lines in scanned(text).items()}
        listed = {}
        for place in (p for p in places() if p.document == document):
            listed.setdefault(place.kind, []).append((place.first, place.last))
        assert listed == found


def test_the_scan_sees_formulas_numbers_comparisons_causes_and_code():
    prose = ["a $b$", "has 3 heads", "it is better", "- so that it holds", "1. plain"]
    code = ["```python", "import torch", "# why", "┌──┐", "```", "```math", "z", "```", "see [3](./a3.md)"]
    text = "\n".join(["# 5. Title", "$$", "x = 1", "y", "$$", *prose, *code])
    assert scanned(text) == {
        "displayed formula": [[2, 5], [16, 18]],
        "row of a formula": [[3, 3]],
        "inline formula": [[6, 6]],
        "number": [[7, 7], [19, 19]],
        "comparison": [[8, 8]],
        "cause": [[9, 9]],
        "code": [[12, 12]],
    }
