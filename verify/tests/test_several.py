"""Several candidates of one operation: all are judged, and rows and findings say which one they are about."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.edited_files import edited
from tests.field_corpus import path_of
from veriformer.spec.requirement import Weight
from veriformer.verify.cli import verify
from veriformer.verify.engine.extent import lines_run
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.run import check
from veriformer.verify.engine.several import absorb, further, name_first
from veriformer.verify.presentation.recognised import lines, outside
from veriformer.verify.presentation.verdict import headline
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.results import Results
from veriformer.verify.results.domain import Domain
from veriformer.verify.results.record import json_safe, validate
from veriformer.verify.targets.source_files import module_of

sys.path.insert(0, str(Path(__file__).parent))

from made_results import results, row

TEXT = """
import torch

def swish(x):
    return x * torch.sigmoid(x)

def silu(x):
    return x / (1 + torch.exp(-1.1 * x))
"""
SILU = ("silu.equation", "silu.gradient", "silu.purity")
RECOGNISED = {
    "recognised": [
        {"operation": "silu", "name": "swish"},
        {"operation": "gelu", "name": "gelu"},
        {"operation": "silu", "name": "silu"},
    ],
    "by_name": [],
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with two functions of one operation, the second wrong."""
    found = tmp_path_factory.mktemp("several") / "mine.py"
    found.write_text(TEXT)
    return found


def test_each_further_candidate_is_held_to_equation_and_purity(file: Path) -> None:
    found = recognise(module_of(file))
    assert [pin.name for pin in found.pins] == ["swish", "silu"]
    rows = Plan(target=str(file), only=("silu",), dtypes=("fp32",)).rows()
    assert list(further(str(file), found.to_dict(), rows)) == [("silu", SILU)]


def test_where_rows_have_no_equation_a_further_candidate_is_held_to_all(file: Path) -> None:
    every = Plan(target=str(file), only=("silu",), dtypes=("fp32",)).rows()
    rows = [row for row in every if row.check.requirement.slug in ("silu.purity", "silu.layout")]
    ((_, asked),) = further(str(file), recognise(module_of(file)).to_dict(), rows)
    assert set(asked) == {"silu.purity", "silu.layout"}


def test_a_single_candidate_has_none_beside_it(file: Path) -> None:
    rows = Plan(target="mine.py:silu", only=("silu",), dtypes=("fp32",)).rows()
    assert not list(further("mine.py:silu", RECOGNISED, rows))


def judged(file: Path, name: str, only: str) -> Results:
    return check(f"{file}:{name}", only=(only,), dtype=("fp32",))


@pytest.mark.whole
def test_a_fault_of_the_second_violates_and_is_told_by_its_name(file: Path) -> None:
    whole, other = judged(file, "swish", "silu.equation"), judged(file, "silu", "silu.equation")
    assert whole.exit_status == 0
    whole.implementation |= RECOGNISED
    whole.findings = name_first(whole.findings, RECOGNISED)
    absorb(whole, other, "silu", ("silu.equation",), frozenset())
    assert whole.exit_status == 1
    (finding,) = (one for one in whole.findings if one.weight is Weight.WRONG)
    assert finding.what.startswith("silu: silu: ")
    assert [row.key for row in whole.results if row.finding == finding.id] == ["silu.equation[fp32-cpu]@silu"]
    assert finding.rows == ("silu.equation[fp32-cpu]@silu",)
    validate(json_safe(whole.to_dict()))


@pytest.mark.whole
def test_what_was_judged_by_its_equation_is_told_as_that(file: Path) -> None:
    whole = judged(file, "swish", "silu.equation")
    whole.implementation |= RECOGNISED
    assert "silu" in outside(whole.implementation)
    absorb(whole, judged(file, "swish", "silu.equation"), "silu", ("silu.equation",), frozenset())
    assert "silu" not in outside(whole.implementation)
    assert "silu by equation and purity alone" in headline(whole)


def test_one_beside_a_name_of_the_contract_is_judged_as_well_and_told(file: Path) -> None:
    """The first of them is what has the name; the suite's names of the contract come before what is recognised."""
    found = {"recognised": [{"operation": "silu", "name": "swish"}], "by_name": ["silu"]}
    rows = Plan(target=str(file), only=("silu",), dtypes=("fp32",)).rows()
    assert list(further(str(file), found, rows)) == [("swish", SILU)]
    assert any("silu as well: swish" in text for _, text in lines(found))


@pytest.mark.whole
@pytest.mark.parametrize(
    ("gradient", "status"), [("grad * s * (1 + x * (1 - s))", 0), ("grad.contiguous().mul_(s * (1 + x * (1 - s)))", 1)]
)
def test_a_further_candidate_that_writes_into_the_upstream_gradient_violates(
    tmp_path: Path, gradient: str, status: int
) -> None:
    file = tmp_path / "mine.py"
    renamed = {"old": "def silu(", "new": "def swish("}
    text = edited(path_of("silu_backward"), [renamed, {"old": "grad * s * (1 + x * (1 - s))", "new": gradient}])
    file.write_text(f"{text}\n\ndef silu(x):\n    return x * torch.sigmoid(x)\n")
    only = ["--only", "silu.equation", "--only", "silu.purity"]
    found = CliRunner().invoke(verify, [str(file), *only, "--profile", "quick", "--dtype", "fp32", "--jobs", "1"])
    assert "silu as well: swish" in found.output
    assert found.exit_code == status, found.output


def test_lines_that_another_candidate_runs_are_seen() -> None:
    whole, other = (results([row("silu.equation")], domain={"silu": Domain()}) for _ in range(2))
    spans = (("mine.py", 4, 5), ("mine.py", 9, 9))
    other.domain["silu"] = Domain(never_run=spans, untaken=spans)
    absorb(whole, other, "silu", ("silu.equation",), lines_run([{"silu": {"ran": [["mine.py", 4], ["mine.py", 9]]}}]))
    assert whole.domain["silu"] == Domain(never_run=(("mine.py", 5, 5),), untaken=(("mine.py", 5, 5),))
