"""A full disk, no GPU, a busy machine, a killed process: each is said clearly, and nothing is lost."""

import errno
import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from veriformer.bench.cli import bench
from veriformer.bench.document import Benchmarks
from veriformer.bench.regression import command, measure
from veriformer.bench.statistics import Block
from veriformer.bench.verdicts import Verdict

ONLY = ["--only", "rms_norm, all sizes, forward", "--blocks", "2"]


@pytest.fixture
def quick(monkeypatch):
    """Times that are made up."""

    def block(base, head, found, plan, tell, number):
        for series in found.values():
            series.blocks.append(Block([1.0, 1.0], [1.0, 1.0]))

    monkeypatch.setattr(measure, "_block", block)


@pytest.fixture
def full_disk(monkeypatch):
    """Half of each file still fits."""
    write = Path.write_text

    def fails(self, text, *rest, **options):
        write(self, text[: len(text) // 2], *rest, **options)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fails)


def run(*words):
    return CliRunner().invoke(bench, list(words))


@pytest.mark.usefixtures("quick", "full_disk")
def test_on_a_full_disk_the_verdicts_are_shown_and_the_old_file_stays(tmp_path):
    file = tmp_path / "benchmarks.json"
    with file.open("w") as old:
        old.write("old")
    found = run("regression", "torch", "torch", *ONLY, "--json", str(file))
    assert found.exit_code == 2
    assert "same      rms_norm" in found.output
    assert "No space left on device" in found.output
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.usefixtures("quick")
def test_a_history_that_finds_no_room_stays_as_it_was_and_the_results_are_written(tmp_path, monkeypatch):
    import pandas as pd

    history, file = tmp_path / "times.parquet", tmp_path / "benchmarks.json"
    words = ["regression", "torch", "torch", *ONLY, "--history", str(history)]
    assert run(*words).exit_code == 0
    before = history.read_bytes()

    def fails(self, path, **options):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", fails)
    found = run(*words, "--json", str(file))
    assert found.exit_code == 2
    assert "No space left on device" in found.output
    assert history.read_bytes() == before
    assert len(Benchmarks.from_dict(json.loads(file.read_text())).regressions) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["benchmarks.json", "times.parquet"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize(
    "words", [["gpu-attention"], ["tune"], ["scaling", "--device", "cuda"], ["aa", "--device", "cuda"]]
)
def test_without_a_gpu_one_line_says_so(words):
    found = run(*words)
    assert found.exit_code == 2
    assert len(found.output.splitlines()) == 1
    assert "cuda" in found.output.lower()


@pytest.mark.usefixtures("quick")
def test_a_busy_machine_is_told_before_the_verdicts(monkeypatch):
    monkeypatch.setattr(command, "load", lambda: 6.5)
    first, *rest = run("regression", "torch", "torch", *ONLY).output.splitlines()
    assert first == "busy: 6.5 programs wait for each processor; --clock cpu is less disturbed by them"
    assert any("same" in line for line in rest)


@pytest.mark.usefixtures("local_processes")
def test_a_process_that_ends_costs_its_sweep_and_no_other(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import torch\n"
        "class Ended(BaseException): pass\n"
        "def rms_norm(x, weight=None, *, eps=1e-6):\n"
        "    return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps)\n"
        "def layer_norm(x, *rest, **options):\n"
        "    raise Ended\n"
    )
    only = ["--only", "layer_norm over N, forward", "--only", "rms_norm over N, forward"]
    words = [*only, "--processes", "2", "--clock", "cpu", "--json", str(tmp_path / "json")]
    run("scaling", str(tmp_path / "mine.py"), *words)
    found = {s.operation: s for s in Benchmarks.from_dict(json.loads((tmp_path / "json").read_text())).scalings}
    assert found["layer_norm"].verdict is Verdict.INVALID
    assert found["layer_norm"].reason == "its process was ended by signal 9"
    assert len(found["rms_norm"].seconds) == 2
