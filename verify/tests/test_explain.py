"""The command that explains names: each kind of them, those of several kinds, and words that name nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner, Result

from tests.warm import INTERPRETER
from veriformer.spec.cli import main
from veriformer.spec.requirements import REQUIREMENTS
from veriformer.verify.commands.explain import explain
from veriformer.verify.contract.signatures import POSITIONAL
from veriformer.verify.reference import KINDS, UnknownNameError, explanations
from veriformer.verify.results.verdict import EXIT_STATUS
from veriformer.verify.targets.claims import KNOWN_CONVENTIONS
from veriformer.verify.targets.kinds import MODELS, TRAINERS


def _run(*words: str) -> Result:
    return CliRunner().invoke(explain, words)


def test_requirement_is_told_as_the_list_of_requirements_tells_it() -> None:
    listed = CliRunner().invoke(main, ["requirements", "attention.causality"]).stdout
    told = _run("attention.causality").stdout
    assert listed.startswith(told)
    assert told.startswith("attention.causality  leak\n")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("layer_norm", "layer_norm(x, weight=None, bias=None, *, eps=1e-5)"),
        ("optimizer", "torch.optim.Optimizer"),
        ("24a", "(24a)"),
        ("rope-relative-position", "rope.equation"),
        ("rope.pairing", 'CLAIMS = {"conventions": {"rope.pairing": "half"}}'),
        ("not_provided", "inference only"),
        ("exit:3", "No verdict"),
        ("worst_ratio", "above 1 is a violation"),
        ("results.status", "known-fail"),
    ],
)
def test_each_kind_is_told(word: str, said: str) -> None:
    assert said.strip("()") in _run(word).stdout


def test_name_of_two_things_is_told_of_both() -> None:
    assert [one.kind for one in explanations("3")] == ["exit status", "equation"]
    assert [one.name for one in explanations("24")] == ["24a", "24b"]
    assert [one.name for one in explanations("seed")] == ["seed"]


def test_every_name_is_explained_under_itself() -> None:
    for kind, known in KINDS.items():
        names = list(known.names())
        assert names == list(dict.fromkeys(names))
        for name in names:
            assert name in known.matching(name)
            told = known.explain(name)
            assert (told.kind, told.name) == (kind, name)
            assert told.paragraphs
            assert all(told.paragraphs)


def test_nothing_that_is_taken_or_given_is_left_out() -> None:
    names = {kind: set(known.names()) for kind, known in KINDS.items()}
    assert names["requirement"] == {one.slug for one in REQUIREMENTS}
    assert names["operation"] == {*POSITIONAL, *MODELS, *TRAINERS}
    assert names["claim"] >= set(KNOWN_CONVENTIONS)
    assert {str(status) for status in EXIT_STATUS.values()} <= names["exit status"]


@pytest.mark.parametrize(
    ("word", "meant"),
    [("attention.causalty", "attention.causality"), ("sofmax", "softmax"), ("rope.paring", "rope.pairing")],
)
def test_unknown_name_is_answered_with_what_comes_close(word: str, meant: str) -> None:
    refused = _run(word)
    assert refused.exit_code == 2
    assert f"'{meant}'" in refused.stderr
    with pytest.raises(UnknownNameError, match="expected a requirement"):
        explanations(word)


def test_pytorch_is_not_imported() -> None:
    code = """
import sys
from veriformer.verify.commands.explain import explain
explain(["attention.causality", "attention", "rope.pairing", "exit:3", "worst_ratio"], standalone_mode=False)
assert not {"torch", "sympy", "numpy", "pandas"} & set(sys.modules)
"""
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([INTERPRETER, "-c", code], env=paths, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
