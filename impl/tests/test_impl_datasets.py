"""Training on data sets of Hugging Face: read from local folders, since nothing may be downloaded in a test."""

import json
import sys

import pytest
from click.testing import CliRunner

from veriformer.impl.training.texts import text_of
from veriformer.train.command import train

LINES = [f"{i} is {'even' if i % 2 == 0 else 'odd'} and {i + 1} is not." for i in range(200)]
CONFIGS = """---
configs:
- config_name: whole
  data_files: whole.jsonl
  default: true
- config_name: part
  data_files: part.jsonl
---
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data set of two configurations, and a cache that is gone after the test."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    home = tmp_path / "numbers"
    home.mkdir()
    for name, lines in (("whole", LINES), ("part", LINES[50:60])):
        rows = (json.dumps({"id": i, "text": line}) for i, line in enumerate(lines))
        (home / f"{name}.jsonl").write_text("\n".join(rows), encoding="utf-8")
    (home / "README.md").write_text(CONFIGS, encoding="utf-8")
    return home


def test_its_rows_are_the_lines_of_the_text(folder):
    assert text_of(None, str(folder)) == "\n".join(LINES)
    assert text_of(None, f"{folder}:part") == "\n".join(LINES[50:60])


def test_the_command_trains_on_it(folder, tmp_path):
    sizes = ["--width", "16", "--layers", "1", "--heads", "2", "--length", "16", "--batch", "4", "--steps", "12"]
    options = ["--dataset", str(folder), *sizes, "--lr", "0.02", "--output", str(tmp_path / "run")]
    result = CliRunner().invoke(train, options, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    known = len("\n".join(LINES)) * 9 // 10
    assert f"{known:,} tokens of 256 kinds" in result.output
    assert 1 < float(result.output.split("perplexity ")[1].split()[0]) < 100  # bytes at random would give 256


def refused(*options):
    result = CliRunner().invoke(train, ["--dataset", *options])
    assert result.exit_code == 2
    return result.output


def test_what_is_missing_is_named(folder, tmp_path, monkeypatch):
    assert "dataset: expected a data set that can be read" in refused(str(tmp_path / "nowhere"))
    (folder / "README.md").unlink()
    (folder / "part.jsonl").unlink()
    (folder / "whole.jsonl").write_text('{"body": "a"}\n', encoding="utf-8")
    assert "dataset: expected a column named text, got ['body']" in refused(str(folder))
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert "pip install 'veriformer[text]'" in refused("any")
