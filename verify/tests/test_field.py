"""The corpus of ordinary code: that it is whole, and that a wrong judgement of it is noticed."""

from __future__ import annotations

import difflib
import re
from typing import Any

import pytest

from tests.field_corpus import FOLDER, VIOLATING, complaints, evaluate, expected, operations, path_of
from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import REQUIREMENTS
from veriformer.verify import load

DUE = expected()
CORRECT = [name for name in DUE if "__" not in name]
FAULTY = [name for name in DUE if "__" in name]
SAMPLE = (
    "clipping",
    "rope_complex",
    "sinusoids__from_one",
    "tied_embedding__scaled_head",
    "dropout_bernoulli__own_stream",
)
"""Files whose judgement takes seconds; ``nox -s field`` judges them all."""
SLUGS = {requirement.slug for requirement in REQUIREMENTS}


def finding(**changes: Any) -> dict[str, Any]:
    plain = {"weight": "wrong", "operation": "attention", "what": "the scale is ignored", "when": None}
    return {**plain, "requirements": ["attention.scale"], **changes}


def document(*findings: dict[str, Any], **changes: Any) -> dict[str, Any]:
    grave = any(found["weight"] in VIOLATING for found in findings)
    verdict = "violated" if grave else "holds"
    return {"verdict": verdict, "findings": list(findings), "domain": {}, **changes}


FAULT = {
    "verdict": "violated",
    "fault": "a scale of 0 is taken as not given",
    "operation": "attention",
    "weight": ["wrong", "fragile"],
    "match": "scale of 0",
    "requirements": ["attention.scale"],
}
RMS_NORM = {
    "constants": {"eps": 1e-5},
    "precision": {"fp64": "fp32"},
    "refused": ["group"],
    "rules": ["multiple of 16"],
}
SOUND = {"verdict": "holds", "domain": {"rms_norm": RMS_NORM}}
FOUND = {
    "provided": [],
    "constants": {"eps": 1.0000003e-5},
    "precision": {"fp64": "fp32"},
    "refused": {"grouped heads": "RuntimeError: …"},
    "rules": ["n a multiple of 16"],
}
ADVICE = finding(weight="imprecise", what="computed in fp32 for fp64 input")


@pytest.mark.whole
def test_the_corpus_is_whole() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(CORRECT)
    assert len(CORRECT) >= 30
    assert {name.partition("__")[0] for name in FAULTY} == set(CORRECT), "each correct file has a faulty form"
    assert len({name for file in CORRECT for name in operations(_loaded(file))}) >= 20


@pytest.mark.whole
@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_file_says_what_the_suite_can_ask_of_it(name: str) -> None:
    assert DUE[name].keys() <= {"verdict", "dtypes", "domain"}
    assert DUE[name]["verdict"] == "holds"
    assert set(DUE[name].get("domain", {})) <= set(operations(_loaded(name)))
    assert operations(_loaded(name))


@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_file_differs_in_one_place(name: str) -> None:
    right, wrong = (_lines(file) for file in (name.partition("__")[0], name))
    changed = [line for line in difflib.ndiff(right, wrong) if line[0] in "+-"]
    assert 0 < len(changed) <= 14, "one fault, not another program"


@pytest.mark.whole
@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_can_be_recognised(name: str) -> None:
    due = DUE[name]
    asked = [due["operation"]] if isinstance(due["operation"], str) else due["operation"]
    weights = [due["weight"]] if isinstance(due["weight"], str) else due["weight"]
    assert due["verdict"] == ("holds" if due["weight"] == "weakness" else "violated")
    assert due["fault"]
    assert set(asked) <= set(operations(_loaded(name)))
    assert set(weights) <= {*VIOLATING, "weakness"} <= {weight.value for weight in Weight}
    assert set(due.get("requirements", ())) <= SLUGS
    assert due.get("requirements") or re.compile(due["match"])


def test_what_is_due_is_accepted() -> None:
    assert evaluate(document(finding()), FAULT) == []
    by_words = finding(
        weight="fragile", what="wrong", when="only with a scale of 0", requirements=["attention.equation"]
    )
    assert evaluate(document(by_words, finding(), ADVICE), FAULT) == []
    assert evaluate(document(ADVICE, domain={"rms_norm": FOUND}), SOUND) == []


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (document(finding(), verdict="holds"), "verdict is holds"),
        (document(finding(), verdict="inconclusive"), "verdict is inconclusive"),
        (document(), "nothing found"),
        (document(ADVICE), "nothing found"),
        (document(finding(operation="softmax")), "not the due one"),
        (document(finding(weight="leak")), "not the due one"),
        (document(finding(requirements=["attention.mask"])), "not the due one"),
        (document(ADVICE, finding()), "not the due one"),
        (document(finding(requirements=["attention.mask"]), finding()), "not the due one"),
        (document(finding(), finding(), finding(weight="leak")), "2 further findings"),
    ],
)
def test_a_wrong_judgement_of_a_fault_is_noticed(given: dict[str, Any], complaint: str) -> None:
    assert any(complaint in said for said in evaluate(given, FAULT))


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (document(finding(), domain={"rms_norm": FOUND}), "verdict is violated"),
        (document(finding(weight="fragile"), domain={"rms_norm": FOUND}), "false alarm: fragile: attention"),
        (document(verdict="inconclusive", domain={"rms_norm": FOUND}), "verdict is inconclusive"),
        (document(), "eps is 1e-05, told as None"),
        (document(domain={"rms_norm": {**FOUND, "constants": {"eps": 1e-6}}}), "eps is 1e-05, told as 1e-06"),
        (document(domain={"rms_norm": {**FOUND, "precision": {}}}), "fp64 is fp32, told as None"),
        (document(domain={"rms_norm": {**FOUND, "refused": {}}}), "nothing refused matches 'group'"),
        (document(domain={"rms_norm": {**FOUND, "rules": ["n a multiple of 32"]}}), "nothing rules matches"),
    ],
)
def test_a_wrong_judgement_of_correct_code_is_noticed(given: dict[str, Any], complaint: str) -> None:
    assert any(complaint in said for said in evaluate(given, SOUND))


@pytest.mark.whole
@pytest.mark.parametrize("name", SAMPLE)
def test_a_file_is_judged_as_is_due(name: str) -> None:
    assert complaints(name) == []


def _loaded(name: str) -> object:
    return load(str(path_of(name))).implementation


def _lines(name: str) -> list[str]:
    return path_of(name).read_text(encoding="utf-8").splitlines()
