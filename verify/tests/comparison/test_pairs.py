"""A few of the pairs, and what a comparison says of them; all of them run in ``whole_pairs.py``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.comparison.corpus import PAIRS, candidate_file, compared, problem_file
from veriformer.verify import FindingsError, TargetError
from veriformer.verify.comparison import Comparison, compare
from veriformer.verify.comparison.command import command
from veriformer.verify.results import validate

pytestmark = pytest.mark.usefixtures("warm")


@pytest.fixture(scope="module")
def in_place() -> Comparison:
    return compared("wrong", "add__in_place")


def test_a_finding_says_what_and_brings_a_script(in_place: Comparison, tmp_path: Path) -> None:
    changed = next(one for one in in_place.findings if one.id == "changed")
    assert "argument 0 in place" in changed.what
    assert changed.counterexample
    file = tmp_path / "script.py"
    file.write_text(changed.counterexample["script"], encoding="utf-8")
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
    assert (done.returncode, "[0]" in done.stdout) == (1, True), done.stderr
    with pytest.raises(FindingsError, match="argument 0 in place"):
        in_place.raise_for_findings()


def test_the_record_is_one_of_results(in_place: Comparison, tmp_path: Path) -> None:
    in_place.write(tmp_path / "results.json")
    document = json.loads((tmp_path / "results.json").read_text("utf-8"))
    validate(document)
    assert document["verdict"] == "violated"
    assert {row["requirement"] for row in document["results"]} >= {"compare.values", "compare.purity"}


@pytest.mark.whole
def test_a_right_candidate_is_not_accused() -> None:
    found = compared("right", "logsumexp__shifted")
    assert (found.exit_status, found.findings) == (0, [])
    assert found.power is not None
    assert found.power < 1e-4
    found.raise_for_findings()


@pytest.mark.whole
def test_a_memory_of_addresses_is_found_out() -> None:
    found = compared("wrong", "matmul__memo_by_address")
    assert [one.id for one in found.grave] == ["history"]
    assert found.grave[0].weight == "leak"


@pytest.mark.whole
def test_without_inputs_there_is_no_verdict(tmp_path: Path) -> None:
    file = tmp_path / "strange.py"
    file.write_text("def strange(x):\n    raise ValueError('x: never')\n", encoding="utf-8")
    found = compare(file, file)
    assert found.exit_status == 3
    assert "no inputs" in found.why


@pytest.mark.whole
def test_what_cannot_be_loaded_is_refused() -> None:
    with pytest.raises(TargetError, match="no such file"):
        compare(PAIRS / "nowhere.py", problem_file("add"))


@pytest.mark.whole
def test_the_command_has_the_statuses_of_verify(capfd: pytest.CaptureFixture[str]) -> None:
    problem = str(problem_file("clip"))
    with pytest.raises(SystemExit) as ended:
        command.main([problem, str(candidate_file("wrong", "clip__returns_its_argument"))])
    assert ended.value.code == 1
    assert "DIFFER" in capfd.readouterr().err
    with pytest.raises(SystemExit) as ended:
        command.main([problem, "nowhere.py"])
    assert ended.value.code == 2
