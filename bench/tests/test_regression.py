"""Two versions that take turns in fresh processes."""

import json
import random
import zipfile

import pandas as pd
import pytest
from click.testing import CliRunner

from veriformer.bench.cli import bench
from veriformer.bench.document import Benchmarks
from veriformer.bench.regression import history, measure
from veriformer.bench.regression.measure import Plan
from veriformer.bench.regression.record import Regression
from veriformer.bench.statistics import Block, Change

NORM = """import torch
def rms_norm(x, weight=None, *, eps=1e-6):
    {work}
    return x * (x * x).mean(-1, keepdim=True).add(eps).rsqrt() * weight
"""
ONLY = ["--only", "rms_norm, all sizes, forward", "--clock", "cpu"]


def written(folder, work="pass"):
    folder.mkdir()
    (folder / "mine.py").write_text(NORM.format(work=work))
    return str(folder)


def run(*arguments):
    return CliRunner().invoke(bench, ["regression", *arguments])


@pytest.mark.whole
def test_twice_the_work_is_slower_and_everything_is_written(tmp_path):
    base, head = written(tmp_path / "base"), written(tmp_path / "head", "for _ in range(30): x * x")
    files = {name: tmp_path / name for name in ("json", "history", "markdown", "pytest-benchmark")}
    words = [word for name, file in files.items() for word in (f"--{name}", str(file))]
    result = run(base, head, "--target", "mine.py", *ONLY, "--blocks", "3", *words)
    assert result.exit_code == 1, result.output
    assert "slower" in result.output
    (found,) = Benchmarks.from_dict(json.loads(files["json"].read_text())).regressions
    assert found.verdict is Change.SLOWER
    assert found.ratio > 1.1
    assert "| ✗ slower | rms_norm" in files["markdown"].read_text()
    assert len(pd.read_parquet(files["history"])) == 1
    (kept,) = Benchmarks.from_dict(json.loads(files["json"].read_text())).histories
    assert (kept.workload, len(kept.seconds), kept.levels) == (found.workload, 1, [])
    (stored,) = json.loads(files["pytest-benchmark"].read_text())["benchmarks"]
    turns = sum(map(len, found.turns["head"]))
    assert stored["stats"]["rounds"] == len(stored["stats"]["data"]) == turns
    assert 3 * 2 * Plan().quads <= turns <= 3 * 2 * Plan().most


@pytest.mark.whole
def test_a_wheel_is_compared_with_a_checkout(tmp_path):
    base = written(tmp_path / "base")
    wheel = tmp_path / "head.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("mine.py", NORM.format(work="raise RuntimeError('not here')"))
    result = run(base, str(wheel), "--target", "mine", *ONLY, "--blocks", "2")
    assert result.exit_code == 3
    assert "invalid" in result.output
    assert "RuntimeError: not here" in result.output


@pytest.mark.whole
def test_a_process_that_is_killed_costs_its_workload_and_no_other(tmp_path):
    base = written(tmp_path / "base")
    head = written(tmp_path / "head")
    killing = "\ndef softmax(x, dim=-1):\n    import os\n    os.kill(os.getpid(), 9)\n"
    for folder in (base, head):
        with open(f"{folder}/mine.py", "a") as file:
            file.write(killing)
    only = [*ONLY, "--only", "softmax, all sizes, forward"]
    result = run(base, head, "--target", "mine.py", *only, "--blocks", "2")
    assert "invalid   softmax, all sizes, forward: a process was ended by signal 9" in result.output
    assert "× base" in result.output


def test_an_interrupt_keeps_what_was_measured(tmp_path, monkeypatch):
    def block(base, head, found, plan, tell, number):
        if number == 2:
            raise KeyboardInterrupt
        for series in found.values():
            series.blocks.append(Block([1.0, 1.0], [1.0, 1.0]))

    monkeypatch.setattr(measure, "_block", block)
    result = run("torch", "torch", *ONLY, "--json", str(tmp_path / "json"))
    assert result.exit_code == 130
    (found,) = Benchmarks.from_dict(json.loads((tmp_path / "json").read_text())).regressions
    assert len(found.turns["base"]) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.py", "nowhere.py"], "nowhere.py"),
        (["nowhere.whl", "."], "found no such file"),
        (["torch", "torch", "--target", "mine"], "--target goes with a checkout"),
        (["torch", "torch", "--only", "sofmax"], "expected an operation, got 'sofmax'"),
        (["torch", "torch", "--device", "cuda:99"], "--device cuda:99"),
        (["torch", "torch", "--clock", "device"], "expected a GPU"),
    ],
)
def test_what_cannot_be_compared_is_said(words, said):
    result = run(*words, *([] if "--only" in words else ONLY[:2]), *(["--blocks", "2"]))
    assert result.exit_code == 2
    assert said in result.output


def recorded(seconds, fingerprint="here"):
    return Regression(
        workload="softmax",
        base="a",
        head="b",
        verdict=Change.SAME,
        reason="",
        ratio=1.0,
        interval=[1.0, 1.0],
        seconds={"base": seconds, "head": seconds},
        turns={"base": [], "head": []},
        clock="cpu",
        device="cpu",
        fingerprint=fingerprint,
    )


def test_the_history_knows_where_a_time_changed_and_compares_no_other_machine(tmp_path):
    file = tmp_path / "times.parquet"
    random.seed(0)
    for i in range(24):
        seconds = (1.0 if i < 12 else 1.5) * (1 + 0.02 * random.random())
        history.extend(file, [recorded(seconds), recorded(10 * seconds, "elsewhere")], f"commit {i}")
    (found,) = history.histories(history.read(file), "here")
    (level,) = found.levels
    assert (level.start, found.version[level.start], len(found.seconds)) == (12, "commit 12", 24)
    assert 1.45 < level.ratio < 1.55
    (early,) = history.histories(history.read(file).head(22), "here")
    assert not early.levels


def test_a_history_that_is_none_is_refused_and_kept(tmp_path):
    file = tmp_path / "times.parquet"
    file.write_text("mine")
    with pytest.raises(history.HistoryError, match="expected a history"):
        history.extend(file, [recorded(1.0)], "commit")
    assert file.read_text() == "mine"
