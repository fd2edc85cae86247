"""Tokenizers with merges of ids are judged as training and encoding of byte pairs."""

from __future__ import annotations

from pathlib import Path

import pytest

from veriformer.verify import check
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.targets.source_files import module_of

TOKENIZERS = module_of(Path(__file__).parent / "forms" / "byte_pairs.py")
LAWS = ("bpe_train", "bpe_encode")


def violated(name: str) -> set[str]:
    results = check(getattr(TOKENIZERS, name), only=list(LAWS), profile="quick")
    assert results.summary.get("pass", 0) > 5, results.summary
    return {row.requirement for row in results.violations}


@pytest.mark.whole
@pytest.mark.parametrize("name", ["BytePairTokenizer", "OfTexts"])
def test_one_that_breaks_no_law_holds(name: str) -> None:
    assert not violated(name)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("FromTheLeft", "bpe_encode.equation"),
        ("Longest", "bpe_train.most_frequent"),
        ("OneShort", "bpe_train.equation"),
    ],
)
def test_a_fault_is_found(name: str, law: str) -> None:
    found = violated(name)
    assert law in found, found
    assert {one.partition(".")[0] for one in found} == {law.partition(".")[0]}


def test_one_that_takes_text_apart_is_refused_with_the_reason() -> None:
    found = recognise(TOKENIZERS.ByWords)
    assert not found.pins
    assert "takes text apart" in found.refused[0].reason
