"""The suite as a library: ``check`` and ``conformance``, from a user's own code and tests."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from veriformer.verify import Results, check, conformance, load
from veriformer.verify.results import Status, json_safe, read, validate, write
from veriformer.verify.targets.loading import wrap

hostile: Any = load(str(Path(__file__).parent / "hostile.py")).implementation
ROOTS = [str(Path(__file__).parents[2] / package) for package in ("spec", "impl", "verify", "bench", "reports")]


@pytest.mark.whole
def test_a_correct_object_passes() -> None:
    results = check(SimpleNamespace(softmax=hostile.softmax), only=["softmax"], dtype=["fp32"])
    assert results.exit_status == 0
    assert set(results.summary) == {"pass"}
    assert len(results.results) == results.planned > 3


def test_a_wrong_object_fails_with_its_equations() -> None:
    wrong = SimpleNamespace(softmax=lambda z, dim=-1: torch.softmax(2 * hostile.softmax(z, dim), dim))
    results = check(wrong, only=["softmax.equation"], dtype=["fp64"])
    assert results.exit_status == 1
    (row,) = results.violations
    assert row.requirement == "softmax.equation"
    assert "1" in row.equations
    assert row.counterexample is not None


def test_claims_are_heard() -> None:
    claimed = SimpleNamespace(
        softmax=hostile.softmax, CLAIMS={"dtypes": ["fp64"], "not_provided": {"rms_norm": "later"}}
    )
    results = check(claimed, only=["softmax.contract", "rms_norm.contract"], dtype=["fp32", "fp64"])
    assert [row.status for row in results.results] == [
        Status.NOT_APPLICABLE,
        Status.PASS,
        Status.NOT_PROVIDED,
        Status.NOT_PROVIDED,
    ]


def test_results_survive_writing_and_reading(tmp_path: Path) -> None:
    wrong = SimpleNamespace(softmax=lambda z, dim=-1: z * float("nan"))
    results = check(wrong, only=["softmax.equation"], dtype=["fp32"])
    write(results, tmp_path / "results.json")
    again = read(tmp_path / "results.json")
    assert json_safe(again.to_dict()) == json_safe(results.to_dict())
    frame = again.to_pandas()
    assert list(frame["status"]) == [row.status for row in results.results]


def test_results_that_break_the_schema_are_written_all_the_same(tmp_path: Path) -> None:
    results = check(SimpleNamespace(), only=["softmax.contract"])
    results.results = [replace(row, seconds=-1.0) for row in results.results]
    with pytest.raises(ValueError, match="results/0/seconds"):
        write(results, tmp_path / "results.json")
    assert '"seconds": -1.0' in (tmp_path / "results.json").read_text()


def test_a_broken_document_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{"schema": "veriformer/results/9"}')
    with pytest.raises(ValueError, match=r"broken\.json"):
        read(tmp_path / "broken.json")
    document = check(SimpleNamespace(), only=["softmax.contract"]).to_dict()
    validate(json_safe(document))
    document["results"][0]["status"] = "green"
    with pytest.raises(ValueError, match="results/0/status"):
        validate(json_safe(document))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"profile": "slow"}, "quick"), ({"dtype": ["fp12"]}, "fp12"), ({"only": ["sofmax"]}, "sofmax")],
)
def test_unusable_arguments_are_named(arguments: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        check(SimpleNamespace(), **arguments)  # type: ignore[arg-type]


def test_a_run_with_a_missing_row_is_invalid() -> None:
    mine = SimpleNamespace(softmax=hostile.softmax)
    results = check(mine, only=["softmax.contract"], dtype=["fp32", "fp64"])
    assert (results.exit_status, results.valid) == (0, True)
    cut = Results(**{**vars(results), "results": results.results[:1]})
    assert (cut.exit_status, cut.valid) == (3, False)


USER_TEST = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import hostile
import bench, reports
from types import ModuleType, SimpleNamespace
from veriformer.verify import conformance

mine = SimpleNamespace(softmax=hostile.softmax, rms_norm=hostile.rms_norm)

@conformance(mine, only=["softmax", "rms_norm.contract"], dtype=["fp32"])
def test_conformance(row):
    row()

def test_own_folders():
    assert bench.mine and reports.mine
"""


@pytest.mark.whole
def test_a_test_file_in_a_repository_with_its_own_bench_and_reports(tmp_path: Path) -> None:
    for folder in ("bench", "reports"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("mine = True\n")
    (tmp_path / "test_mine.py").write_text(USER_TEST)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(ROOTS)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 1, done.stdout
    assert "1 failed" in done.stdout
    assert "rms_norm.contract[fp32-cpu] fail" in done.stdout
    assert "passed" in done.stdout


@pytest.mark.whole
def test_words_for_a_target_are_taken_as_the_command_takes_them(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import torch\ndef softmax(scores):\n    return torch.softmax(scores, -1)\n")
    results = check(path, only=["softmax.equation", "gelu"], dtype=["fp32"])
    assert results.verdict == "holds"
    assert {row.status for row in results.results if row.operation == "gelu"} == {Status.NOT_PROVIDED}


def scaled_attention(q: Any, k: Any, v: Any) -> Any:
    """Attention for as many heads of keys as of queries, and an error of no known kind for others."""
    if q.shape[1] != k.shape[1]:
        raise KeyError("heads")
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def outcomes(mark: pytest.MarkDecorator) -> dict[str, str]:
    """By the key of each row of ``conformance``, how its test ends."""
    ends = {}
    for row in mark.args[1]:
        try:
            row.values[0]()
            ends[row.id] = "passed"
        except pytest.skip.Exception:
            ends[row.id] = "skipped"
        except pytest.fail.Exception as error:
            ends[row.id] = f"failed: {error}"
    return ends


@pytest.mark.whole
def test_in_a_users_tests_too_what_is_always_refused_is_not_provided() -> None:
    only = ["attention.equation", "attention.grouped_is_copied"]
    found = outcomes(conformance(SimpleNamespace(attention=scaled_attention), only=only, dtype=["fp64"]))
    assert found["attention.equation[fp64-cpu]"] == "passed"
    assert found["attention.grouped_is_copied[fp64-cpu]"] == "skipped"


def test_words_and_profiles_mean_the_same_in_a_users_tests(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import torch\ndef softmax(scores):\n    return torch.softmax(scores, -1)\n")
    found = outcomes(conformance(path, only=["softmax.equation"], dtype=["fp32"]))
    assert found["softmax.equation[fp32-cpu]"] == "passed"
    with pytest.raises(ValueError, match="quick"):
        conformance(path, profile="slow")


@pytest.mark.whole
def test_the_script_of_a_module_that_no_import_would_find_loads_its_file(tmp_path: Path) -> None:
    found = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / "of_one_name_too.py"
        file.write_text("import torch\ndef softmax(z, dim=-1):\n    return 2 * torch.softmax(z, dim)\n")
        module = load(str(file)).implementation
        results = check(module, only=["softmax.equation"], dtype=["fp32"])
        assert results.implementation["name"] == "of_one_name_too"
        found.append(next(row.counterexample for row in results.results if row.counterexample))
    for one in found:
        ran = subprocess.run([sys.executable, "-"], input=one.script, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (1, "violated\n")


def test_a_module_in_memory_that_has_no_file_is_imported_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("made_in_memory")
    module.softmax = hostile.softmax  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "made_in_memory", module)
    assert "import_module('made_in_memory')" in str(wrap(module).loader)


@pytest.mark.whole
def test_processes_that_run_rows_have_one_thread_for_each_library(tmp_path: Path) -> None:
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    mine = tmp_path / "mine.py"
    mine.write_text(
        f"import os\nimport torch\nfound = [os.environ.get(name) for name in {names}]\n"
        "def softmax(z, dim=-1):\n    return torch.softmax(z, dim) if set(found) == {'1'} else z\n"
    )
    variables = {key: value for key, value in os.environ.items() if key not in names}
    words = [str(mine), "--only", "softmax.equation", "--dtype", "fp32", "--profile", "quick", "--jobs", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "veriformer.verify", *words],
        env={**variables, "PYTHONPATH": os.pathsep.join(ROOTS)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
