"""The command that lists requirements: what it selects, and what it tells of each."""

import json

import pytest
from click.testing import CliRunner, Result

from veriformer.spec.cli import main
from veriformer.spec.requirement import OF_REQUIREMENTS, Weight
from veriformer.spec.requirements import REQUIREMENTS, requirement
from veriformer.spec.unicode_text import in_sentence


def _run(*words: str) -> Result:
    return CliRunner().invoke(main, ["requirements", *words])


def test_each_has_its_line() -> None:
    lines = _run().stdout.splitlines()
    assert [line.split()[:2] for line in lines[:-1]] == [[r.weight.value, r.slug] for r in REQUIREMENTS]
    assert lines[-1].startswith(f"{len(REQUIREMENTS)} requirements: ")


@pytest.mark.parametrize("weight", OF_REQUIREMENTS)
def test_weight_narrows(weight: Weight) -> None:
    listed = json.loads(_run("--weight", weight.value, "--json").stdout)
    assert listed
    assert [one["slug"] for one in listed] == [r.slug for r in REQUIREMENTS if r.weight is weight]


def test_one_is_told_in_full() -> None:
    told = _run("attention.causality").stdout
    known = requirement("attention.causality")
    assert in_sentence(known.statement) in told
    assert in_sentence(known.floating_point_statement) in told
    assert all(link in told for link in known.precedents)


@pytest.mark.whole
def test_no_latex_is_shown() -> None:
    told = _run("*").stdout
    assert not [line for line in told.splitlines() if "\\" in line or "$" in line]


def test_equation_selects_what_rests_on_it() -> None:
    slugs = [one["slug"] for one in json.loads(_run("37", "--json").stdout)]
    assert slugs == [r.slug for r in REQUIREMENTS if "37" in r.equations]


def test_unknown_word_is_refused() -> None:
    refused = _run("sofmax")
    assert refused.exit_code == 2
    assert "'sofmax' matches no check" in refused.output
